"""One estimator on one log: value, standard error, interval, diagnostics, verdict."""

import math

import numpy as np

from preplay.estimators._batch import SessionBatch
from preplay.estimators._protocol import Estimator
from preplay.estimators._results import Estimate, Interval
from preplay.estimators._terms import Stats
from preplay.estimators._verdict import decide


def evaluate_estimator(
    estimator: Estimator,
    batch: SessionBatch,
    *,
    policy: str = "target",
    level: float = 0.95,
    resamples: int = 10_000,
    seed: int = 0,
) -> Estimate:
    """Estimate the target policy's value and say how far it can be trusted."""
    stats = estimator.statistics(batch)
    value = estimator.value(stats)
    diagnostics: dict[str, float | None] = {"ess_min": float(batch.n_sessions)}
    interval, error = Interval.unbounded(level, "bootstrap"), None
    if isinstance(stats, Stats):
        diagnostics = weight_diagnostics(stats)
    if batch.n_sessions > 1 and math.isfinite(value):
        values = estimator.resampled(batch, resamples, seed)
        interval, error = percentile_interval(values, level), standard_error(values)
        diagnostics["undefined_resamples"] = float(np.isnan(values).mean())
    verdict = decide(value, batch, diagnostics, interval)
    raw = value if math.isfinite(value) else None
    return Estimate(
        policy=policy,
        estimator=estimator.id,
        value=None if verdict.kind == "not identified" else raw,
        raw_value=raw,
        standard_error=error,
        interval=interval,
        n_sessions=batch.n_sessions,
        n_turns=batch.n_turns,
        diagnostics=diagnostics,
        verdict=verdict.kind,
        reason=verdict.reason,
        fix=verdict.fix,
    )


def percentile_interval(values: np.ndarray, level: float) -> Interval:
    """Quantiles of resampled values; unbounded when more than one tail's worth of them is undefined."""
    tail = (1 - level) / 2
    if np.isnan(values).mean() > tail:
        return Interval.unbounded(level, "bootstrap")
    low, high = np.nanquantile(values, [tail, 1 - tail])
    return Interval(low=float(low), high=float(high), level=level, method="bootstrap")


def standard_error(values: np.ndarray) -> float | None:
    """Standard deviation of resampled values."""
    defined = values[~np.isnan(values)]
    return float(defined.std(ddof=1)) if len(defined) > 1 else None


def weight_diagnostics(stats: Stats) -> dict[str, float | None]:
    """Effective sessions and largest weight, the worst over steps and at the last one."""
    ess, share = stats.ess(), stats.largest_share()
    largest = float(stats.log_largest.max())
    return {
        "ess_min": float(ess.min()),
        "ess_last": float(ess[-1]),
        "max_weight_share": float(share.max()),
        "log_max_weight": largest if math.isfinite(largest) else None,
    }
