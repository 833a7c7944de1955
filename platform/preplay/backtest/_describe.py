"""What a data card says about actions: which tool families, and what would give the outcome away."""

import numpy as np
import pyarrow as pa

from preplay.actions import structure
from preplay.backtest._leaks import find_leaks
from preplay.seeding import numpy_rng

SAMPLE = 1000
"""Sessions looked at."""


def action_notes(
    turns: pa.Table, *, environment_key: str | None = None, solved_at: float = 1.0, seed: int = 0
) -> list[str]:
    """Sentences on tool families and leaks, from whole sessions of a seeded sample.

    Args:
        turns: Rows of ``TURN_SCHEMA``, sorted.
        environment_key: Field of ``extras`` that names the environment; found by itself when absent.
        solved_at: A session is solved when one of its turns has at least this reward; leaks are only looked for
            where some sessions are solved and some are not.
    """
    session = np.cumsum(turns["turn"].to_numpy() == 0) - 1
    if (count := int(session[-1]) + 1) > SAMPLE:
        chosen = numpy_rng(seed, "described sessions").choice(count, SAMPLE, replace=False)
        turns = turns.filter(pa.array(np.isin(session, chosen)))
    first = np.flatnonzero(turns["turn"].to_numpy() == 0)
    made = structure(turns, environment_key=environment_key)
    success = (turns["reward"].to_numpy() >= solved_at - 1e-9).astype(np.float64)
    solved = np.maximum.reduceat(success, first)
    if not 0 < solved.sum() < len(solved):
        return [made.families.sentence()]
    ended = turns["terminated"].to_numpy(zero_copy_only=False)
    return [made.families.sentence(), *find_leaks(made, success, ended, turns).sentences]
