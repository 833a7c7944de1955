"""Intervals for a stream that stay valid however often one looks and whenever one stops."""

import math
from dataclasses import dataclass

import numpy as np

from preplay.errors import PreplayError
from preplay.estimators._results import Interval


@dataclass(frozen=True)
class ConfidenceSequence:
    """Predictable plug-in empirical Bernstein sequence for values in a declared range.

    Waudby-Smith & Ramdas 2023, theorem 2. ``update`` returns the sequence after more values, in order of
    arrival; any split of the stream into updates gives the same. With probability ``level`` all its
    intervals hold at once.

    Args:
        bounds: Declared range of a value, e.g. of min(w, c)·G.
        level: Of the whole sequence.
        n, total, squares: Count, Σ x and Σ (x − running mean)² of values scaled to [0, 1].
        rates, weighted, penalty: Σ λ, Σ λ x and Σ v ψ(λ).
    """

    bounds: tuple[float, float]
    level: float = 0.95
    n: int = 0
    total: float = 0.0
    squares: float = 0.0
    rates: float = 0.0
    weighted: float = 0.0
    penalty: float = 0.0

    def __post_init__(self):
        if not self.bounds[0] < self.bounds[1]:
            raise PreplayError(f"the declared range {self.bounds} is empty.")

    def update(self, values: np.ndarray) -> "ConfidenceSequence":
        """The sequence after ``values`` [k] arrived."""
        low, high = self.bounds
        x = (np.asarray(values, np.float64) - low) / (high - low)
        if len(x) == 0:
            return self
        if x.min() < -1e-12 or x.max() > 1 + 1e-12:
            raise PreplayError(f"a value leaves the declared range {self.bounds}.", fix="Clip the weights.")
        count = self.n + np.arange(1, len(x) + 1)
        sums = self.total + np.cumsum(x)
        mean = (0.5 + sums) / (count + 1)
        before = np.append((0.5 + self.total) / (self.n + 1), mean[:-1])
        squares = self.squares + np.cumsum((x - mean) ** 2)
        variance = (0.25 + np.append(self.squares, squares[:-1])) / count
        rate = np.minimum(np.sqrt(2 * self._log_term / (variance * count * np.log1p(count))), 0.5)
        psi = (-np.log1p(-rate) - rate) / 4
        return ConfidenceSequence(
            self.bounds,
            self.level,
            int(count[-1]),
            float(sums[-1]),
            float(squares[-1]),
            self.rates + float(rate.sum()),
            self.weighted + float(rate @ x),
            self.penalty + float((4 * (x - before) ** 2) @ psi),
        )

    @property
    def interval(self) -> Interval:
        """The interval now; the whole range before any value."""
        low, high = self.bounds
        if self.n == 0:
            return Interval(low=low, high=high, level=self.level, method="confidence-sequence")
        centre, reach = self.weighted / self.rates, (self._log_term + self.penalty) / self.rates
        ends = (low + (high - low) * min(max(c, 0.0), 1.0) for c in (centre - reach, centre + reach))
        return Interval(low=next(ends), high=next(ends), level=self.level, method="confidence-sequence")

    @property
    def _log_term(self) -> float:
        return math.log(2 / (1 - self.level))


def asymptotic_sequence(
    n: int, mean: float, standard_deviation: float, *, level: float = 0.95, tightest_at: int = 1000
) -> Interval:
    """Anytime-valid for large n without a declared range (Waudby-Smith et al. 2021), from running moments.

    Args:
        n: Sessions so far.
        mean, standard_deviation: Of the per-session values so far.
        level: Of the whole sequence.
        tightest_at: Number of sessions at which the width matters most; choose it beforehand.
    """
    if n < 2:
        return Interval.unbounded(level, "asymptotic-confidence-sequence")
    alpha = 1 - level
    rho2 = (2 * math.log(1 / alpha) + math.log(1 + 2 * math.log(1 / alpha))) / tightest_at
    reach = standard_deviation * math.sqrt(
        (n * rho2 + 1) / (n**2 * rho2) * math.log((n * rho2 + 1) / alpha**2)
    )
    return Interval(low=mean - reach, high=mean + reach, level=level, method="asymptotic-confidence-sequence")
