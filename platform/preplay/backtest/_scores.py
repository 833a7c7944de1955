"""How far predictions are from the logged values, over all left-out policies."""

import numpy as np
from scipy.stats import norm, rankdata

from preplay.backtest._problem import Problem
from preplay.backtest._report import EstimatorScore
from preplay.backtest._view import Prediction


def score(problem: Problem, name: str, found: dict[int, Prediction], seconds: float) -> EstimatorScore:
    """Points of error (pooled and per part), rank correlation, and what trusting the ranking costs."""
    logged = np.array([problem.value(j) for j in found])
    predicted = np.array([p.pooled for p in found.values()])
    parts = [abs(v - problem.value(j, f)) for j, p in found.items() for f, v in enumerate(p.folds)]
    rho, low, high = rank_correlation(predicted, logged)
    return EstimatorScore(
        estimator=name,
        pooled=100 * float(np.mean(np.abs(predicted - logged))),
        worst=100 * float(np.max(np.abs(predicted - logged))),
        fold=100 * float(np.nanmean(parts)),
        spearman=rho,
        spearman_low=low,
        spearman_high=high,
        regret=100 * float(logged.max() - logged[np.argmax(predicted)]),
        seconds=seconds,
    )


def rank_correlation(
    predicted: np.ndarray, logged: np.ndarray, level: float = 0.95
) -> tuple[float, float, float]:
    """Spearman's rho with its interval by Fisher's z (variance 1.06 / (n - 3)); NaN where ranks say nothing."""
    if len(logged) < 3 or np.ptp(predicted) < 1e-12 or np.ptp(logged) < 1e-12:
        return float("nan"), -1.0, 1.0
    rho = float(np.corrcoef(rankdata(predicted), rankdata(logged))[0, 1])
    if len(logged) < 4:
        return rho, -1.0, 1.0
    z = np.arctanh(np.clip(rho, -0.9999, 0.9999))
    half = norm.ppf((1 + level) / 2) * np.sqrt(1.06 / (len(logged) - 3))
    return rho, float(np.tanh(z - half)), float(np.tanh(z + half))
