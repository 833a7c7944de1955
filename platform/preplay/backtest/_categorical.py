"""A categorical world model: rates per cell with additive back-off, and a Markov chain over stages.

A policy is a table of classes per stage (a clone of its sessions, or first shadow actions); G stages, C classes.
"""

from dataclasses import dataclass

import numpy as np

_PRIOR = 20.0
_STEPS = 20


@dataclass(frozen=True)
class CategoricalModel:
    """What follows a class in a stage.

    Args:
        success: float64 [G, C] chance that the turn solves the session.
        leave: float64 [G, C] chance that the session ends unsolved.
        following: float64 [G, C, G] stage that follows otherwise; sums to 1.
        count: float64 [G, C] turns seen.
    """

    success: np.ndarray
    leave: np.ndarray
    following: np.ndarray
    count: np.ndarray

    def value(self, start: np.ndarray, policy: np.ndarray, horizon: int, gamma: float = 1.0) -> float:
        """Chance to solve a session within ``horizon`` turns, discounted per turn.

        Args:
            start: float64 [G, C] share of sessions that begin in a stage with a class; sums to 1.
            policy: float64 [G, C] chance of each class in a stage; rows sum to 1.
            horizon: Turns.
            gamma: Discount per turn.
        """
        alive, solved = start, 0.0
        for turn in range(horizon):
            solved += gamma**turn * float((alive * self.success).sum())
            going = alive * np.clip(1 - self.success - self.leave, 0, 1)
            alive = np.einsum("gc,gch->h", going, self.following)[:, None] * policy
        return solved


def fit_categorical(
    stage: np.ndarray,
    action: np.ndarray,
    success: np.ndarray,
    leave: np.ndarray,
    next_stage: np.ndarray,
    *,
    stages: int,
    classes: int,
) -> CategoricalModel:
    """Fit by counts; ``next_stage`` is -1 where a session ended. Rare cells lean on stage and class alone."""
    shape = (stages, classes)
    count = _table(stage, action, np.ones(len(stage)), shape)
    goes = next_stage >= 0
    following = np.zeros((stages, classes, stages))
    np.add.at(following, (stage[goes], action[goes], next_stage[goes]), 1.0)
    rates = [additive(_table(stage, action, y, shape), count) for y in (success, leave)]
    by_class = following.sum(0) + _PRIOR * _share(following.sum((0, 1)))[None]
    following = following + _PRIOR * _share(by_class)[None]
    return CategoricalModel(rates[0], rates[1], _share(following), count)


def clone_table(
    stage: np.ndarray, action: np.ndarray, *, stages: int, classes: int, prior: float = 2.0
) -> np.ndarray:
    """float64 [G, C]: a policy's classes per stage, leaning on its overall habits where a stage is rare."""
    count = _table(stage, action, np.ones(len(stage)), (stages, classes))
    return _share(count + prior * _share(count.sum(0))[None])


def additive(total: np.ndarray, count: np.ndarray) -> np.ndarray:
    """Rates [G, C] = mean + stage effect + class effect, pulled to each cell's own rate as it fills up."""
    mean = total.sum() / max(count.sum(), 1)
    row, column = np.zeros(len(total)), np.zeros(total.shape[1])
    for _ in range(_STEPS):
        row = ((total - count * (mean + column[None])).sum(1)) / (count.sum(1) + _PRIOR)
        column = ((total - count * (mean + row[:, None])).sum(0)) / (count.sum(0) + _PRIOR)
    expected = np.clip(mean + row[:, None] + column[None], 0, 1)
    return (total + _PRIOR * expected) / (count + _PRIOR)


def _table(stage: np.ndarray, action: np.ndarray, weight: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    return np.bincount(stage * shape[1] + action, weight, shape[0] * shape[1]).reshape(shape)


def _share(counts: np.ndarray) -> np.ndarray:
    """Last axis scaled to sum to 1; even where it is empty."""
    total = counts.sum(-1, keepdims=True)
    return np.where(total > 0, counts / np.where(total > 0, total, 1), 1 / counts.shape[-1])
