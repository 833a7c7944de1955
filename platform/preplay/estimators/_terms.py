"""What a session adds to an estimate: weight × quantity per step, and a baseline. Adds up over shards.

Every estimator here has the form ``mean_i base_i + Σ_t γ^t Σ_i w_it x_it / D_t`` and differs only in w, x,
base and in whether D_t is the number of sessions or the sum of their weights. An ended session keeps its
last cumulative weight in D_t: dropping it turns a mean over sessions into a mean over survivors.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np

from preplay.estimators._layout import Layout
from preplay.estimators._logspace import LOG_MAX, ScaledSum, exp_below, pad_last

Normaliser = Literal["count", "weights"]


@dataclass(frozen=True)
class Stats:
    """Sufficient statistics of sessions for one estimator; ``a + b`` are those of both.

    ``log_weights``, ``log_squares`` and ``log_largest`` are the logarithms of Σ w, Σ w² and max w over all
    sessions at each step, float64 [T]. ``target_counts`` is the number of sessions alive at each step.
    """

    n_sessions: int
    n_turns: int
    normaliser: Normaliser
    base: ScaledSum
    numerator: ScaledSum
    log_weights: np.ndarray
    log_squares: np.ndarray
    log_largest: np.ndarray

    def __add__(self, other: "Stats") -> "Stats":
        size = max(len(self.log_weights), len(other.log_weights))
        a, b = self._padded(size), other._padded(size)
        return Stats(
            a.n_sessions + b.n_sessions,
            a.n_turns + b.n_turns,
            a.normaliser,
            a.base + b.base,
            a.numerator + b.numerator,
            np.logaddexp(a.log_weights, b.log_weights),
            np.logaddexp(a.log_squares, b.log_squares),
            np.maximum(a.log_largest, b.log_largest),
        )

    def value(self) -> float:
        """The estimate; NaN where it is undefined (no weight at all) or no float can hold it."""
        n = np.log(self.n_sessions)
        if self.normaliser == "count":
            return float((self.base + self.numerator.total()).over(n))
        return float(self.base.over(n) + self.numerator.over(self.log_weights).sum())

    def ess(self) -> np.ndarray:
        """Kish's effective number of sessions at each step, float64 [T]; 0 where all weights are 0."""
        with np.errstate(invalid="ignore"):
            return np.nan_to_num(np.exp(2 * self.log_weights - self.log_squares), nan=0.0)

    def largest_share(self) -> np.ndarray:
        """Share of the largest weight in all weights at each step, float64 [T]."""
        with np.errstate(invalid="ignore"):
            return np.nan_to_num(np.exp(self.log_largest - self.log_weights), nan=1.0)

    def _padded(self, size: int) -> "Stats":
        logs = ("log_weights", "log_squares", "log_largest")
        padded = {name: pad_last(getattr(self, name), size) for name in logs}
        return replace(self, numerator=self.numerator.padded(size), **padded)


@dataclass(frozen=True)
class Terms:
    """The terms of each session, enough to re-estimate on any reweighting of the sessions.

    Args:
        layout: Step order; sessions are in ``layout.order`` throughout.
        log_weight: float64 by step, log w_it.
        x: float64 by step, the weighted quantity without discount.
        factors: float64 [T], γ^t.
        base: float64 [S] in session order, not weighted.
        normaliser: Divide by the number of sessions or by their weights.
        n_turns: Turns behind the terms.
    """

    layout: Layout
    log_weight: np.ndarray
    x: np.ndarray
    factors: np.ndarray
    base: np.ndarray
    normaliser: Normaliser
    n_turns: int

    @cached_property
    def last_log_weight(self) -> np.ndarray:
        """Each session's last cumulative log-weight, in layout order."""
        return self.log_weight[self.layout.last_rows]

    @cached_property
    def stats(self) -> Stats:
        """Sums over the sessions."""
        layout = self.layout
        top = np.maximum.reduceat(self.log_weight, layout.starts[:-1])
        weight = exp_below(self.log_weight, np.repeat(top, layout.alive))
        with np.errstate(divide="ignore"):
            alive = np.log(layout.step_sums(weight)) + top
            alive_squares = np.log(layout.step_sums(weight * weight)) + 2 * top
        largest = np.maximum(top, _shift(np.maximum.accumulate(self._ended_top)))
        return Stats(
            len(layout.order),
            self.n_turns,
            self.normaliser,
            ScaledSum.of(self.base.sum()),
            ScaledSum(top, self.factors * layout.step_sums(weight * self.x)),
            np.logaddexp(alive, self._ended(1)),
            np.logaddexp(alive_squares, self._ended(2)),
            largest,
        )

    def session_values(self) -> np.ndarray:
        """``base_i + Σ_t γ^t w_it x_it`` in session order, float64 [S]; NaN where no float can hold one."""
        if self.log_weight.max() > LOG_MAX - 60:
            return np.full(len(self.base), np.nan)
        return self.base + self.layout.session_sums(np.exp(self.log_weight) * self.x, self.factors)

    @property
    def _ended_top(self) -> np.ndarray:
        top = np.full(self.layout.n_steps, -np.inf)
        np.maximum.at(top, self.layout.lengths - 1, self.last_log_weight)
        return top

    def _ended(self, power: int) -> np.ndarray:
        """log Σ w^power over the sessions that ended before each step, [T]."""
        last, top = self.layout.lengths - 1, self._ended_top
        weight = exp_below(self.last_log_weight, top[last]) ** power
        with np.errstate(divide="ignore"):
            sums = np.log(np.bincount(last, weight, self.layout.n_steps)) + power * top
        return _shift(np.logaddexp.accumulate(np.where(np.isnan(sums), -np.inf, sums)))


def _shift(values: np.ndarray) -> np.ndarray:
    return np.concatenate([[-np.inf], values[:-1]])
