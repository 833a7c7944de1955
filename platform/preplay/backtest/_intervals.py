"""Intervals from errors on left-out policies, and what a few labelled sessions of the target add."""

import numpy as np
from scipy.stats import norm
from scipy.stats import t as student

from preplay.backtest._report import Bounds

_FLOOR = 0.02
_NORMAL = 1e6
"""Degrees of freedom from which Student's t is taken to be normal."""


def scale(value: np.ndarray | float) -> np.ndarray:
    """Errors grow towards a half like a share's standard deviation; a floor keeps sure predictions honest."""
    return np.sqrt(np.maximum(np.asarray(value) * (1 - np.asarray(value)), _FLOOR))


def calibrated(value: float, predicted: np.ndarray, logged: np.ndarray, *, level: float) -> Bounds:
    """An interval as wide as earlier predictions were wrong.

    Args:
        value: The prediction, in [0, 1].
        predicted, logged: float64 [P] or [P, folds]: predictions of pseudo-targets and their logged values.
            Parts of one policy are not independent: the degrees of freedom lie between the number of policies
            and that of parts, by how much parts of one policy differ (Satterthwaite 1946).
        level: Share of values that should lie inside.
    """
    wrong = (predicted - logged) / scale(predicted)
    wrong = wrong[np.isfinite(wrong).reshape(len(wrong), -1).any(1)] if len(wrong) else wrong
    if len(wrong) < 2:
        return Bounds(low=0.0, high=1.0, error=float("inf"))
    error = float(np.sqrt(np.nanmean(wrong**2)) * scale(value))
    freedom = _freedom(wrong)
    half = error * float(student.ppf((1 + level) / 2, freedom))
    return Bounds(low=max(0.0, value - half), high=min(1.0, value + half), error=error, freedom=freedom)


def _freedom(wrong: np.ndarray) -> float:
    """Degrees of freedom of the mean square of errors, float64 [P] or [P, folds]."""
    if wrong.ndim == 1 or wrong.shape[1] < 2:
        return float(len(wrong))
    policies, parts = wrong.shape
    between = float(np.mean(np.nanmean(wrong, 1) ** 2))
    within = float(np.mean(np.nanvar(wrong, 1)))
    spread = between**2 / policies + within**2 / (policies * (parts - 1))
    return (between + within) ** 2 / spread if spread > 0 else float(policies)


def error_draws(bounds: Bounds, count: int, rng: np.random.Generator) -> np.ndarray:
    """float64 [count]: draws of the error that an interval stands for, Student's t."""
    return bounds.error * rng.standard_t(min(bounds.freedom, _NORMAL), count)


def interval_of(value: float, error: float, level: float) -> Bounds:
    """A normal interval of a share, cut at 0 and 1."""
    half = error * float(norm.ppf((1 + level) / 2))
    return Bounds(low=max(0.0, value - half), high=min(1.0, value + half), error=error)


def combine_labelled(value: float, error: float, solved: int, sessions: int) -> tuple[float, float]:
    """Prediction and a few labelled sessions by inverse variance: value and standard error.

    The labelled share is smoothed towards the prediction (one pseudo-session), so that 0 of 3 is no certainty.

    >>> value, error = combine_labelled(.5, .1, 30, 30)
    >>> round(value, 2), round(error, 3)
    (0.94, 0.03)
    """
    if not sessions:
        return value, error
    share = (solved + value) / (sessions + 1)
    sampling = max(share * (1 - share), 1 / (sessions + 2) / 4) / sessions
    weight = error**2 / (error**2 + sampling)
    return value + weight * (share - value), float(np.sqrt(weight * sampling))
