"""A part of the real InterCode logs: quick enough for every day, large enough to see the point."""

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from preplay.backtest import BacktestConfig, backtest
from preplay.logs import read_logs

SHARED = Path(os.environ.get("PREPLAY_SHARED_DATA", Path(__file__).parents[2] / "../shared/data"))


@pytest.mark.slow
def test_structure_beats_the_mean_of_the_logs_on_intercode():
    folder = SHARED / "intercode-sql"
    if not folder.is_dir():
        pytest.skip("the InterCode logs are not on this machine (set PREPLAY_SHARED_DATA)")
    turns = read_logs([str(folder)]).turns
    question = np.array([hash_of(t) for t in turns["task"].to_pylist()])
    keep = (question % 5 == 0) & (np.array(turns["policy"].to_pylist()) != "gpt-4-1-turns")
    config = BacktestConfig(learners=("logistic",), rows=4000)
    report = backtest(turns.filter(pa.array(keep)), config, second_opinions=False)
    assert report.families.main == "sql"
    assert report.chosen is not None
    assert report.chosen.pooled < 8
    assert report.chosen.spearman > 0.6
    assert report.chosen.regret == 0
    assert report.coverage > 0.8
    mean = next(s for s in report.scores if s.estimator == "mean of logs")
    assert mean.pooled > 2 * report.chosen.pooled


def hash_of(text: str) -> int:
    """The same in every process."""
    return sum(text.encode())
