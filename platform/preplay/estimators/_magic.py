"""MAGIC: the blend of partial returns, between the model and WDR, with the least estimated squared error.

Thomas & Brunskill 2016. ``g^(j) = mean V̂(s_0) + Σ_{t≤j} γ^t Σ_i w̄_it δ_it`` trusts the model after step j;
j = −1 is the direct method, j = T − 1 is WDR. The blend x on the simplex minimises xᵀ(Ω + b bᵀ)x, where Ω is
the covariance of the g^(j) (n times the sample covariance of the sessions' parts: the published code lacked
the n) and b_j the distance of g^(j) from the 50 % interval of WDR. That interval is normal here, not
resampled, so that shards add up.

Shapes: T steps, J = T + 1 partial returns.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import nnls
from scipy.stats import norm

from preplay.errors import PreplayError
from preplay.estimators._batch import SessionBatch
from preplay.estimators._bootstrap import resample_terms
from preplay.estimators._estimators import DoublyRobust
from preplay.estimators._influence import influence_of_terms
from preplay.estimators._logspace import exp_below, pad_last
from preplay.estimators._protocol import register_own
from preplay.estimators._terms import Stats, Terms

MAX_STEPS = 1000
_WDR = DoublyRobust("wdr/1", ("log_ratio", "q", "v"), "weights")


@dataclass(frozen=True)
class MagicStats:
    """WDR's statistics and the sessions' second moments.

    Args:
        wdr: Statistics of WDR.
        log_scale: float64 [J], logarithm of the scale of each column of ``cross``; 0 for the baseline.
        cross: float64 [J, J], Σ_i c_i c_iᵀ of the sessions' parts c (baseline, then γ^t w_it δ_it), scaled.
    """

    wdr: Stats
    log_scale: np.ndarray
    cross: np.ndarray

    def __add__(self, other: "MagicStats") -> "MagicStats":
        size = max(len(self.log_scale), len(other.log_scale))
        scale = np.maximum(pad_last(self.log_scale, size), pad_last(other.log_scale, size))
        cross = self._cross_at(scale) + other._cross_at(scale)
        return MagicStats(self.wdr + other.wdr, scale, cross)

    def partial_returns(self) -> np.ndarray:
        """g^(−1), g^(0), …, float64 [J]."""
        base = self.wdr.base.over(np.log(self.wdr.n_sessions))
        steps = self.wdr.numerator.over(self.wdr.log_weights)
        return np.cumsum(np.append(base, steps))

    def covariance(self) -> np.ndarray:
        """Ω, float64 [J, J]."""
        n = self.wdr.n_sessions
        share = exp_below(self.log_scale[1:], self.wdr.log_weights)
        to_share = np.append(1 / n, share)
        sums = np.cumsum(np.cumsum(self.cross * np.outer(to_share, to_share), 0), 1)
        mean = self.partial_returns()
        return n / (n - 1) * (sums - np.outer(mean, mean) / n)

    def blend(self) -> np.ndarray:
        """x, float64 [J]: weights of the partial returns, at least 0, summing to 1."""
        returns, omega = self.partial_returns(), self.covariance()
        reach = norm.ppf(0.75) * np.sqrt(max(omega[-1, -1], 0.0))
        bias = np.sign(returns - returns[-1]) * np.maximum(np.abs(returns - returns[-1]) - reach, 0)
        return simplex_minimum(omega + np.outer(bias, bias))

    def _cross_at(self, scale: np.ndarray) -> np.ndarray:
        more = len(scale) - len(self.log_scale)
        factor = exp_below(pad_last(self.log_scale, len(scale)), scale)
        return np.pad(self.cross, (0, more)) * np.outer(factor, factor)


@dataclass(frozen=True)
class Magic:
    """The estimator; resamples and influences hold the blend fixed."""

    id: str = "magic/1"
    needs: tuple[str, ...] = ("log_ratio", "q", "v")

    def statistics(self, batch: SessionBatch) -> MagicStats:
        terms = self.terms(batch)
        scale = np.append(0.0, terms.stats.log_largest)
        return MagicStats(terms.stats, scale, _cross_moments(terms))

    def value(self, stats: MagicStats) -> float:
        returns = stats.partial_returns()
        if stats.wdr.n_sessions < 2 or not np.isfinite(returns).all():
            return float(returns[-1])
        return float(stats.blend() @ returns)

    def resampled(self, batch: SessionBatch, resamples: int, seed: int) -> np.ndarray:
        return resample_terms(self._blended(batch), resamples, seed)

    def influence(self, batch: SessionBatch) -> np.ndarray:
        return influence_of_terms(self._blended(batch))

    def terms(self, batch: SessionBatch) -> Terms:
        """WDR's terms of each session."""
        batch.require(self.id, self.needs)
        if batch.layout.n_steps > MAX_STEPS:
            raise PreplayError(
                f"MAGIC compares every two steps and takes at most {MAX_STEPS}, not {batch.layout.n_steps}.",
                fix="Use wdr, which it approaches on long sessions.",
            )
        return _WDR.terms(batch)

    def _blended(self, batch: SessionBatch) -> Terms:
        """MAGIC is WDR whose step t counts by the share of partial returns that reach it."""
        terms, stats = self.terms(batch), self.statistics(batch)
        if stats.wdr.n_sessions < 2 or not np.isfinite(stats.partial_returns()).all():
            return terms
        reach = np.cumsum(stats.blend()[::-1])[::-1][1:]
        return replace(terms, factors=terms.factors * reach)


def simplex_minimum(matrix: np.ndarray) -> np.ndarray:
    """argmin xᵀAx over x ≥ 0, Σx = 1, for A positive semi-definite up to rounding.

    With A + εI = LLᵀ the ray x of least ‖Lᵀx‖ at Σx = 1 solves a non-negative least squares problem.
    """
    n = len(matrix)
    size = float(np.trace(matrix)) / n
    if size <= 0:
        return np.full(n, 1 / n)
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    root = np.sqrt(np.clip(values, 1e-12 * size, None))[:, None] * vectors.T / np.sqrt(size)
    x, _ = nnls(np.vstack([root, np.ones(n)]), np.append(np.zeros(n), 1.0), maxiter=50 * n)
    return x / x.sum()


def _cross_moments(terms: Terms) -> np.ndarray:
    layout, top = terms.layout, terms.stats.log_largest
    cross = np.zeros((layout.n_steps + 1, layout.n_steps + 1))
    base = terms.base[layout.order]
    for start in range(0, len(base), 4096):
        part = slice(start, start + 4096)
        lengths = layout.lengths[part]
        steps = np.arange(lengths[0])
        inside = steps < lengths[:, None]
        rows = (
            layout.starts[np.minimum(steps, lengths[:, None] - 1)] + start + np.arange(len(lengths))[:, None]
        )
        weight = exp_below(terms.log_weight[rows], top[: len(steps)])
        parts = np.where(inside, weight * terms.x[rows] * terms.factors[: len(steps)], 0.0)
        columns = np.column_stack([base[part], parts])
        k = columns.shape[1]
        cross[:k, :k] += columns.T @ columns
    return cross


register_own(Magic())
