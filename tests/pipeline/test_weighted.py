"""Whose sessions count for a target, as an evaluation sees them."""

from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

from preplay.estimators import SessionBatch
from preplay.pipeline._context import _starts_differ
from preplay.pipeline._weighted import weighted_sessions

NAMES = np.repeat(["far", "near"], 100)
RATIO = np.log(np.concatenate([np.tile([0.5, 1.5], 50), np.ones(100)]))


def logs(names: np.ndarray) -> SimpleNamespace:
    """200 sessions of one turn, with propensities."""
    turns = pa.table({"behavior_logprob": np.zeros(200)})
    return SimpleNamespace(session_policy=names.astype(object), session_starts=np.arange(201), turns=turns)


def context(starts: np.ndarray, names: np.ndarray = NAMES) -> SimpleNamespace:
    return SimpleNamespace(
        batch=SessionBatch(np.arange(201), np.zeros(200)),
        data=logs(names),
        starts_differ=_starts_differ(logs(names), SimpleNamespace(state=starts), 0),
    )


def test_sessions_of_the_nearer_logger_count_more():
    found = weighted_sessions(context(np.random.default_rng(0).normal(size=(200, 4))), RATIO)
    # 80 of the 100 sessions of "far" are effective: factors .8 and 1 over their mean .9.
    assert found.loggers == {"far": pytest.approx(0.8 / 0.9), "near": pytest.approx(1 / 0.9)}
    assert found.batch.log_ratio == pytest.approx(RATIO + np.log([found.loggers[n] for n in NAMES]))
    assert found.starts_differ is None


def test_loggers_who_served_others_count_the_same():
    starts = np.random.default_rng(0).normal(size=(200, 4)) + 2.0 * (NAMES == "far")[:, None]
    found = weighted_sessions(context(starts), RATIO)
    assert found.loggers == {"far": 1.0, "near": 1.0}
    assert found.starts_differ == "far"
    assert found.batch.log_ratio == pytest.approx(RATIO)


def test_one_logger_or_no_ratios_leave_sessions_as_they_are():
    starts = np.zeros((200, 4))
    alone = weighted_sessions(context(starts, np.full(200, "only")), RATIO)
    assert alone.loggers == {}
    assert alone.batch.log_ratio == pytest.approx(RATIO)
    unknown = weighted_sessions(context(starts), None)
    assert (unknown.batch.log_ratio, unknown.loggers) == (None, {})
