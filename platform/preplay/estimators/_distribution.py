"""The whole distribution of returns under the target policy: CDF, quantiles, CVaR, variance.

Huang et al. 2021, Chandak et al. 2021. ``F̂(x) = Σ w_i 1(G_i ≤ x) / Σ w_i`` with w_i the weight of the whole
session and G_i its discounted return, first turn undiscounted.

Shapes: S sessions, B resamples, P points.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from preplay.errors import PreplayError
from preplay.estimators._batch import SessionBatch
from preplay.estimators._bootstrap import session_counts
from preplay.estimators._logspace import exp_below
from preplay.estimators._results import Interval

ID = "cd/1"


@dataclass(frozen=True)
class ReturnDistribution:
    """Weighted returns of sessions; ``a + b`` is the distribution over the sessions of both.

    Args:
        returns: float64 [S].
        log_weights: float64 [S], not normalised.
    """

    returns: np.ndarray
    log_weights: np.ndarray

    @classmethod
    def of(cls, batch: SessionBatch) -> "ReturnDistribution":
        """From logged sessions and the target's log-ratios."""
        batch.require(ID, ("log_ratio",))
        assert batch.log_ratio is not None
        last = batch.layout.cumulate(batch.log_ratio)[batch.layout.last_rows]
        return cls(batch.returns[batch.layout.order], last)

    def __add__(self, other: "ReturnDistribution") -> "ReturnDistribution":
        return ReturnDistribution(
            np.concatenate([self.returns, other.returns]),
            np.concatenate([self.log_weights, other.log_weights]),
        )

    def cdf(self, points: np.ndarray) -> np.ndarray:
        """P(G ≤ x) at each point, float64 [P]; NaN when no session has weight."""
        below = np.searchsorted(self._sorted_returns, points, side="right")
        return np.append(0.0, self._cumulative)[below]

    def quantile(self, share: float) -> float:
        """The smallest return that at least ``share`` of the sessions stay at or below."""
        _check_share(share)
        if np.isnan(self._cumulative[-1]):
            return float("nan")
        at = np.searchsorted(self._cumulative, share * (1 - 1e-12))
        return float(self._sorted_returns[min(at, len(self.returns) - 1)])

    def cvar(self, share: float) -> float:
        """Mean return of the worst ``share`` of the sessions."""
        _check_share(share)
        return float(_cvar(self._cumulative, self._sorted_returns, share))

    @property
    def mean(self) -> float:
        """Mean return: the same as WIS."""
        return float(self._probabilities @ self._sorted_returns)

    @property
    def variance(self) -> float:
        """Variance of the return of one session."""
        return float(self._probabilities @ (self._sorted_returns - self.mean) ** 2)

    def intervals(
        self, *, share: float, level: float = 0.95, resamples: int = 2000, seed: int = 0
    ) -> dict[str, Interval]:
        """Bootstrap intervals of mean, quantile, CVaR and variance; unbounded for one session or no weight."""
        _check_share(share)
        names = ("mean", "quantile", "cvar", "variance")
        draws = np.concatenate([*self._resampled(share, resamples, seed)])
        defined = ~np.isnan(draws).any(1)
        tail = (1 - level) / 2
        if len(self.returns) < 2 or (~defined).mean() > tail:
            return {name: Interval.unbounded(level, "bootstrap") for name in names}
        low, high = np.quantile(draws[defined], [tail, 1 - tail], axis=0)
        ends = zip(names, low, high, strict=True)
        return {n: Interval(low=float(a), high=float(b), level=level, method="bootstrap") for n, a, b in ends}

    def band(
        self, points: np.ndarray, *, level: float = 0.95, resamples: int = 2000, seed: int = 0
    ) -> np.ndarray:
        """Simultaneous bootstrap band of the CDF, float64 [2, P]: the largest deviation stays inside."""
        centre = self.cdf(points)
        at = np.searchsorted(self._sorted_returns, points, side="right")
        deviations = []
        for probabilities in self._resampled_probabilities(resamples, seed):
            cumulative = np.cumsum(probabilities, 1)
            padded = np.concatenate([np.zeros((len(cumulative), 1)), cumulative], 1)
            deviations.append(np.abs(padded[:, at] - centre).max(1))
        reach = float(np.quantile(np.concatenate(deviations), level))
        return np.stack([(centre - reach).clip(0, 1), (centre + reach).clip(0, 1)])

    @cached_property
    def _order(self) -> np.ndarray:
        return np.argsort(self.returns, kind="stable")

    @cached_property
    def _sorted_returns(self) -> np.ndarray:
        return self.returns[self._order]

    @cached_property
    def _probabilities(self) -> np.ndarray:
        weight = exp_below(self.log_weights, self.log_weights.max())[self._order]
        total = weight.sum()
        return weight / total if total > 0 else np.full(len(weight), np.nan)

    @cached_property
    def _cumulative(self) -> np.ndarray:
        cumulative = np.cumsum(self._probabilities)
        return cumulative / cumulative[-1]

    def _resampled_probabilities(self, resamples: int, seed: int):
        """Normalised again inside each resample: blocks of float64 [rows, S] in order of the returns."""
        rows = max(min(resamples, 2_000_000 // len(self.returns)), 1)
        for first in range(0, resamples, rows):
            size = min(rows, resamples - first)
            counts = [count for _, count in session_counts(len(self.returns), size, seed, first)]
            weight = np.concatenate(counts, 1) * self._probabilities
            with np.errstate(invalid="ignore"):
                yield weight / weight.sum(1, keepdims=True)

    def _resampled(self, share: float, resamples: int, seed: int):
        x = self._sorted_returns
        for probabilities in self._resampled_probabilities(resamples, seed):
            mean = probabilities @ x
            variance = probabilities @ (x * x) - mean**2
            cumulative = np.cumsum(probabilities, 1)
            at = (cumulative < share * (1 - 1e-12)).sum(1).clip(max=len(x) - 1)
            quantile = np.where(np.isnan(mean), np.nan, x[at])
            yield np.column_stack([mean, quantile, _cvar(cumulative, x, share), variance])


def _cvar(cumulative: np.ndarray, returns: np.ndarray, share: float) -> np.ndarray:
    """Σ x·(part of each session's probability below ``share``) / share, over the last axis."""
    capped = np.minimum(cumulative, share)
    return np.diff(capped, axis=-1, prepend=0.0) @ returns / share


def _check_share(share: float) -> None:
    if not 0 < share <= 1:
        raise PreplayError(f"the share of sessions is {share}, but must lie in (0, 1].")
