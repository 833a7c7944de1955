"""Empirical likelihood of weighted returns that knows the weights should average 1 (Cressie-Read, power −2).

Karampatziakis, Langford & Mineiro 2020. Candidate distributions q put mass on the n observed (w, r) and on
one unseen point (w', r'), satisfy Σ q = 1 and Σ q w = 1, and stay near the uniform 1/N, N = n + 1: Σ (N q_i
− 1)² ≤ B. The value is Σ q w r. All of it needs six sums, so shards add up. One weight per session makes it
an interval for WIS.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.stats import f as f_distribution

from preplay.errors import PreplayError
from preplay.estimators._results import Interval


@dataclass(frozen=True)
class WeightedSums:
    """Sums over sessions of weight w and reward r; ``a + b`` are those of both."""

    n: int
    w: float
    ww: float
    wr: float
    wwr: float
    wwrr: float
    r: float

    @classmethod
    def of(cls, weights: np.ndarray, rewards: np.ndarray) -> "WeightedSums":
        """From weights and rewards, float64 [n]."""
        w, r = np.asarray(weights, np.float64), np.asarray(rewards, np.float64)
        if len(w) == 0 or (w < 0).any():
            raise PreplayError("weights must be given and not negative.")
        v = w * r
        sums = (a.sum() for a in (w, w * w, v, w * v, v * v, r))
        return cls(len(w), *map(float, sums))

    def __add__(self, other: "WeightedSums") -> "WeightedSums":
        names = ("w", "ww", "wr", "wwr", "wwrr", "r")
        sums = (getattr(self, name) + getattr(other, name) for name in names)
        return WeightedSums(self.n + other.n, *sums)


def cressie_read_value(sums: WeightedSums, weight_range: tuple[float, float] = (0.0, math.inf)) -> float:
    """The value under the nearest distribution; mass that the weights miss gets the mean reward."""
    n, unseen = sums.n, _unseen_weight(sums, weight_range)
    if math.isinf(unseen):
        value, covered = sums.wr / n, sums.w / n
    else:
        size = n + 1
        mean, variance = _moments(sums, unseen)
        slope = (1 - mean) / variance
        level = 1 - slope * mean
        value = (level * sums.wr + slope * sums.wwr) / size
        covered = (level * sums.w + slope * sums.ww) / size
    return value + max(0.0, 1 - covered) * sums.r / n


def cressie_read_interval(
    sums: WeightedSums,
    reward_range: tuple[float, float],
    weight_range: tuple[float, float] = (0.0, math.inf),
    level: float = 0.95,
) -> Interval:
    """Lowest and highest value over the distributions near enough, with declared ranges of reward and weight."""
    budget = _least_distance(sums, _unseen_weight(sums, weight_range))
    budget += float(f_distribution.isf(1 - level, 1, sums.n))
    low, high = reward_range
    ends = [
        _extreme(sums, low, -1.0, budget, weight_range),
        _extreme(sums, high, 1.0, budget, weight_range),
    ]
    bottom, top = (min(max(end, low), high) for end in ends)
    return Interval(low=bottom, high=top, level=level, method="cressie-read")


def _extreme(
    sums: WeightedSums, reward: float, sign: float, budget: float, weight_range: tuple[float, float]
) -> float:
    """Most extreme value in direction ``sign`` over both unseen weights; ``reward`` if none is feasible."""
    found = [_at_unseen(sums, unseen, reward, sign, budget) for unseen in weight_range]
    feasible = [sign * value for value in found if value is not None]
    return sign * max(feasible) if feasible else reward


def _at_unseen(sums: WeightedSums, unseen: float, reward: float, sign: float, budget: float) -> float | None:
    """Extreme of Σ q w r: the nearest feasible point ± what the rest of the budget buys."""
    n, size = sums.n, sums.n + 1
    if math.isinf(unseen):  # vanishing mass carries the missing weight: value = r' + Σ q w (r − r')
        total = sums.wr - reward * sums.w
        squares = sums.wwrr - 2 * reward * sums.wwr + reward**2 * sums.ww
        centre, spread = reward + total / n, (squares - total**2 / n) / size
        rest = budget / size - 1 / n
    else:
        mean, variance = _moments(sums, unseen)
        if variance <= 0:
            return None
        v = (unseen * reward + sums.wr) / size
        covariance = (unseen**2 * reward + sums.wwr) / size - mean * v
        centre = v + (1 - mean) * covariance / variance
        spread = (unseen**2 * reward**2 + sums.wwrr) / size - v**2 - covariance**2 / variance
        rest = budget / size - (1 - mean) ** 2 / variance
    return centre + sign * math.sqrt(max(spread, 0.0) * rest) if rest >= 0 else None


def _least_distance(sums: WeightedSums, unseen: float) -> float:
    """Σ (N q_i − 1)² of the nearest feasible distribution."""
    if math.isinf(unseen):
        return 1 + 1 / sums.n
    mean, variance = _moments(sums, unseen)
    return (sums.n + 1) * (mean - 1) ** 2 / variance


def _unseen_weight(sums: WeightedSums, weight_range: tuple[float, float]) -> float:
    """Where the unseen mass must sit so that the weights can average 1."""
    return weight_range[1] if sums.w < sums.n else weight_range[0]


def _moments(sums: WeightedSums, unseen: float) -> tuple[float, float]:
    """Mean and variance of the weights with the unseen one among them."""
    size = sums.n + 1
    mean = (unseen + sums.w) / size
    return mean, (unseen**2 + sums.ww) / size - mean**2
