"""Intervals of a mean from one number per session, and their combination with model uncertainty.

For an estimator that is not a plain mean the numbers are ``value + influence``: first-order, for large logs.
"""

import math
from collections.abc import Callable

import numpy as np
from scipy.optimize import brentq
from scipy.stats import f as f_distribution
from scipy.stats import t as t_distribution

from preplay.errors import PreplayError
from preplay.estimators._results import Interval


def student_t(values: np.ndarray, level: float = 0.95) -> Interval:
    """Two-sided t interval of the mean of ``values`` [n].

    The degrees of freedom are those of the variance estimate, 2n/(kurtosis − 1) (Satterthwaite), at most n −
    1: a few heavy sessions make the variance itself uncertain.
    """
    n, mean = len(values), float(np.mean(values))
    if n < 2 or not math.isfinite(mean):
        return Interval.unbounded(level, "student-t")
    spread = float(np.std(values, ddof=1))
    reach = float(t_distribution.ppf((1 + level) / 2, degrees_of_freedom(values))) * spread / math.sqrt(n)
    return Interval(low=mean - reach, high=mean + reach, level=level, method="student-t")


def hoeffding(values: np.ndarray, bounds: tuple[float, float] | None, level: float = 0.95) -> Interval:
    """Finite-sample interval from the declared range of ``values``: width (b − a)·sqrt(2 ln(2/δ)/n)."""
    low, high = _declared(values, bounds, "Hoeffding")
    reach = (high - low) * math.sqrt(math.log(2 / (1 - level)) / (2 * len(values)))
    return _clipped(float(np.mean(values)), reach, reach, (low, high), level, "hoeffding")


def maurer_pontil(values: np.ndarray, bounds: tuple[float, float] | None, level: float = 0.95) -> Interval:
    """Finite-sample empirical Bernstein interval from the declared range (Maurer & Pontil 2009), two-sided."""
    low, high = _declared(values, bounds, "Maurer-Pontil")
    if len(values) < 2:
        return Interval(low=low, high=high, level=level, method="maurer-pontil")
    reach = (high - low) * maurer_pontil_reach((np.asarray(values) - low) / (high - low), (1 - level) / 2)
    return _clipped(float(np.mean(values)), reach, reach, (low, high), level, "maurer-pontil")


def maurer_pontil_reach(unit_values: np.ndarray, delta: float) -> float:
    """One-sided distance at error ``delta`` for values in [0, 1]: sqrt(2V ln(2/δ)/n) + 7 ln(2/δ)/(3(n − 1))."""
    n, log_term = len(unit_values), math.log(2 / delta)
    variance = float(np.var(unit_values, ddof=1))
    return math.sqrt(2 * variance * log_term / n) + 7 * log_term / (3 * (n - 1))


def weighted_bounds(
    weights: np.ndarray,
    returns: np.ndarray,
    bounds: tuple[float, float] | None,
    level: float = 0.95,
    clip: float | None = None,
) -> Interval:
    """Finite-sample bounds of a target's value from session weights, valid without full support.

    Thomas, Theocharous & Ghavamzadeh 2015. ``min(w, c)·(G − a)`` can only be too small, so its lower bound
    holds for V − a; the upper end comes from b − G alike. What the logs do not cover is left between a and
    b.

    Args:
        weights: float64 [n], importance weight of each session.
        returns: float64 [n], its discounted return.
        bounds: Declared range (a, b) of the return.
        level: Two-sided level.
        clip: c; the cube root of n when None. Must not be chosen by looking at these sessions.
    """
    low, high = _declared(returns, bounds, "The bound")
    n = len(returns)
    if n < 2:
        return Interval(low=low, high=high, level=level, method="clipped-maurer-pontil")
    limit = float(n) ** (1 / 3) if clip is None else clip
    clipped = np.minimum(weights, limit) / limit
    size, delta = limit * (high - low), (1 - level) / 2
    above = clipped * (returns - low) / (high - low)
    below = clipped * (high - returns) / (high - low)
    bottom = low + size * max(float(above.mean()) - maurer_pontil_reach(above, delta), 0.0)
    top = high - size * max(float(below.mean()) - maurer_pontil_reach(below, delta), 0.0)
    return Interval(low=min(bottom, high), high=max(top, low), level=level, method="clipped-maurer-pontil")


def empirical_likelihood(values: np.ndarray, level: float = 0.95) -> Interval:
    """Owen's interval of the mean: the means that some reweighting of ``values`` [n] makes likely enough.

    Follows skewness where t does not. The cut is an F quantile with the degrees of freedom of ``student_t``.
    """
    values = np.asarray(values, np.float64)
    mean = float(np.mean(values))
    if len(values) < 2 or not math.isfinite(mean):
        return Interval.unbounded(level, "empirical-likelihood")
    scale = float(np.std(values))
    if scale < 1e-14 * max(abs(mean), 1e-300) or scale == 0:
        return Interval(low=mean, high=mean, level=level, method="empirical-likelihood")
    unit = (values - mean) / scale
    cut = float(f_distribution.ppf(level, 1, degrees_of_freedom(values)))
    low, high = -_likelihood_end(-unit, cut), _likelihood_end(unit, cut)
    return Interval(
        low=mean + scale * low, high=mean + scale * high, level=level, method="empirical-likelihood"
    )


def combine_errors(sampling: float | None, members: np.ndarray) -> tuple[float | None, float | None]:
    """Epistemic error (spread of ensemble members' estimates) and its root-sum-square with the sampling error.

    Args:
        sampling: Standard error over sessions; None when unknown.
        members: float64 [M], the estimate with each member's Q̂. Fewer than two tell nothing.
    """
    if len(members) < 2:
        return None, sampling
    epistemic = float(np.std(members, ddof=1))
    return epistemic, None if sampling is None else math.hypot(sampling, epistemic)


def degrees_of_freedom(values: np.ndarray) -> float:
    """How well ``values`` [n] tell their own variance: 2n/(kurtosis − 1), at most n − 1 and at least 1."""
    n = len(values)
    centred = np.asarray(values, np.float64) - np.mean(values)
    variance = float(np.mean(centred**2))
    if variance <= 0:
        return n - 1
    kurtosis = float(np.mean((centred / math.sqrt(variance)) ** 4))
    return max(min(n - 1, 2 * n / max(kurtosis - 1, 1e-9)), 1.0)


def _likelihood_end(unit: np.ndarray, cut: float) -> float:
    """Largest μ with −2 log R(μ) ≤ cut, for data with mean 0."""
    top = float(unit.max())

    def excess(mu: float) -> float:
        return _log_ratio(unit - mu) - cut

    near = top * (1 - 1e-9)
    if excess(near) <= 0:
        return top
    return _root(excess, 0.0, near, 1e-10)


def _log_ratio(z: np.ndarray) -> float:
    """−2 log of the empirical likelihood ratio of mean 0."""
    low, high = float(z.min()), float(z.max())
    if low >= 0 or high <= 0:
        return 0.0 if low == high == 0 else math.inf
    start, stop = (1 / len(z) - 1) / high, (1 / len(z) - 1) / low

    def slope(lam: float) -> float:
        return float(np.sum(z / (1 + lam * z)))

    lam = _root(slope, start, stop, 1e-12) if slope(start) * slope(stop) < 0 else 0.0
    return 2 * float(np.sum(np.log1p(lam * z)))


def _root(function: Callable[[float], float], low: float, high: float, tolerance: float) -> float:
    return float(brentq(function, low, high, xtol=tolerance))  # pyright: ignore[reportArgumentType]


def _declared(values: np.ndarray, bounds: tuple[float, float] | None, name: str) -> tuple[float, float]:
    """The declared range, checked against the values: a range read off the data is no range."""
    fix = "Give the lowest and highest return a session can have."
    if bounds is None:
        raise PreplayError(f"{name} needs a declared range.", fix=fix)
    low, high = bounds
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise PreplayError(f"the declared range [{low}, {high}] is empty or unbounded.", fix=fix)
    least, most = float(np.min(values)), float(np.max(values))
    slack = 1e-9 * (high - low)
    if least < low - slack or most > high + slack:
        raise PreplayError(
            f"values from {least:.6g} to {most:.6g} leave the declared range [{low}, {high}].", fix=fix
        )
    return float(low), float(high)


def _clipped(
    mean: float, down: float, up: float, bounds: tuple[float, float], level: float, method: str
) -> Interval:
    return Interval(
        low=max(mean - down, bounds[0]), high=min(mean + up, bounds[1]), level=level, method=method
    )
