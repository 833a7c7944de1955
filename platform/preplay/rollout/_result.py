"""What rollouts of one policy amount to.

Legend: M ensemble members, n initial states, N rollouts of each, H steps.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa


@dataclass(frozen=True)
class Drift:
    """How far imagination is from the logs per step; means over sessions, weighted by their survival.

    Args:
        snap: float64 [H] mean ``snap_distance``.
        support: float64 [H] mean ``support_distance``.
        survival: float64 [H] share of sessions that still run before the step.
    """

    snap: np.ndarray
    support: np.ndarray
    survival: np.ndarray


@dataclass(frozen=True)
class RolloutResult:
    """Imagined sessions of one policy.

    Args:
        returns: float64 [M, n, N] discounted return of every session.
        drift: Distance from the logs per step.
        turns: The imagined turns, rows of ``IMAGINED_SCHEMA``.
    """

    returns: np.ndarray
    drift: Drift
    turns: pa.Table

    @property
    def member_values(self) -> np.ndarray:
        """Mean return under each ensemble member, float64 [M]."""
        return self.returns.mean(axis=(1, 2))

    @property
    def initial_values(self) -> np.ndarray:
        """Mean return from each initial state, float64 [n]."""
        return self.returns.mean(axis=(0, 2))

    @property
    def value(self) -> float:
        """Mean return."""
        return float(self.returns.mean())


def summarise(blocks: Iterable[pa.Table], shape: tuple[int, int, int], gamma: float) -> RolloutResult:
    """Returns and drift of the blocks of all M members; ``shape`` is (M, n, N)."""
    turns = pa.concat_tables(list(blocks)).unify_dictionaries()
    step = turns["step"].to_numpy()
    survival = turns["survival"].to_numpy()
    session = np.ravel_multi_index([turns[c].to_numpy() for c in ("member", "initial", "rollout")], shape)
    gained = gamma**step * survival * turns["reward"].to_numpy()
    returns = np.bincount(session, gained, minlength=int(np.prod(shape))).reshape(shape)
    weight = np.bincount(step, survival)
    means = [np.bincount(step, survival * turns[c].to_numpy()) for c in ("snap_distance", "support_distance")]
    drift = Drift(means[0] / weight, means[1] / weight, weight / np.prod(shape))
    return RolloutResult(returns, drift, turns)


def block_returns(turns: pa.Table, gamma: float) -> tuple[np.ndarray, np.ndarray]:
    """(initial state int64 [s], discounted return float64 [s]) of the sessions of one block, which has one member."""
    initial, rollout = (turns[c].to_numpy().astype(np.int64) for c in ("initial", "rollout"))
    width = int(rollout.max()) + 1
    sessions, owner = np.unique(initial * width + rollout, return_inverse=True)
    gained = gamma ** turns["step"].to_numpy() * turns["survival"].to_numpy() * turns["reward"].to_numpy()
    return sessions // width, np.bincount(owner, gained)
