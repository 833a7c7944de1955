"""One estimator on one log: value, standard error, interval, diagnostics, verdict."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.stats import norm
from scipy.stats import t as t_distribution

from preplay.estimators._batch import SessionBatch
from preplay.estimators._diagnostics import MassBalance, mass_balance, pareto_k, tail_mass
from preplay.estimators._estimators import TermsEstimator
from preplay.estimators._intervals import (
    combine_errors,
    degrees_of_freedom,
    empirical_likelihood,
    student_t,
)
from preplay.estimators._magic import Magic, MagicStats
from preplay.estimators._protocol import Estimator
from preplay.estimators._results import Estimate, Interval
from preplay.estimators._terms import Stats
from preplay.estimators._verdict import Evidence, Findings, Thresholds, decide

IntervalMethod = Literal["bootstrap", "student-t", "empirical-likelihood"]


def evaluate_estimator(
    estimator: Estimator,
    batch: SessionBatch,
    *,
    policy: str = "target",
    level: float = 0.95,
    resamples: int = 10_000,
    seed: int = 0,
    interval: IntervalMethod = "bootstrap",
    members: Sequence[SessionBatch] = (),
    evidence: Evidence | None = None,
    thresholds: Thresholds | None = None,
) -> Estimate:
    """Estimate the target policy's value and say how far it can be trusted.

    Args:
        estimator: From ``get_estimator``.
        batch: The logged sessions.
        policy: Name of the target, for the report.
        level: Of the interval.
        resamples: Bootstrap resamples; they also give the standard error.
        seed: Equal seeds draw equal resamples, for every policy and estimator.
        interval: How the interval is made.
        members: The same sessions with each ensemble member's q and v: their spread widens the interval.
        evidence: What else is known, for the verdict.
        thresholds: Where the verdict turns.
    """
    stats = estimator.statistics(batch)
    value = estimator.value(stats)
    sampled = batch.n_sessions > 1 and math.isfinite(value)
    draws = estimator.resampled(batch, resamples, seed) if sampled else np.full(2, np.nan)
    influence = estimator.influence(batch) if sampled else np.zeros(batch.n_sessions)
    member_values = np.array([estimator.value(estimator.statistics(m)) for m in members])
    error = standard_error(draws)
    epistemic, total = combine_errors(error, member_values)
    made = Interval.unbounded(level, interval)
    if sampled:
        made = _widened(_interval(interval, value, influence, draws, level), value, error, total)
    weights = _weights(estimator, batch, stats)
    findings = _findings(value, batch, weights, influence, made, evidence)
    verdict = decide(findings, thresholds)
    raw = value if math.isfinite(value) else None
    return Estimate(
        policy=policy,
        estimator=estimator.id,
        value=None if verdict.kind == "not identified" else raw,
        raw_value=raw,
        standard_error=total,
        epistemic_error=epistemic,
        interval=made,
        n_sessions=batch.n_sessions,
        n_turns=batch.n_turns,
        diagnostics=_diagnostics(weights, findings, draws, batch),
        verdict=verdict.kind,
        reason=verdict.reason,
        fix=verdict.fix,
    )


def percentile_interval(values: np.ndarray, level: float, degrees: float = math.inf) -> Interval:
    """Quantiles of resampled values; unbounded when more than one tail's worth of them is undefined.

    The tails shrink as a t quantile with ``degrees`` of freedom exceeds a normal one (Hesterberg 2015): resampling
    alone makes intervals of few effective sessions too narrow.
    """
    tail = (1 - level) / 2
    if np.isnan(values).mean() > tail:
        return Interval.unbounded(level, "bootstrap")
    if math.isfinite(degrees):
        reach = float(t_distribution.ppf(1 - tail, degrees)) * math.sqrt((degrees + 1) / degrees)
        tail = float(norm.cdf(-reach))
    low, high = np.nanquantile(values, [tail, 1 - tail])
    return Interval(low=float(low), high=float(high), level=level, method="bootstrap")


def standard_error(values: np.ndarray) -> float | None:
    """Standard deviation of resampled values."""
    defined = values[~np.isnan(values)]
    return float(defined.std(ddof=1)) if len(defined) > 1 else None


@dataclass(frozen=True)
class _Weights:
    """Weight diagnostics of one estimate."""

    ess: np.ndarray
    largest_share: float
    log_largest: float
    mass: MassBalance
    pareto_k: float
    tail_mass: float


def _weights(estimator: Estimator, batch: SessionBatch, stats: object) -> _Weights:
    """Of the estimator's own weights; of weights all equal for one that has none per session."""
    if isinstance(stats, MagicStats):
        stats = stats.wdr
    if not isinstance(stats, Stats):
        n = float(batch.n_sessions)
        return _Weights(np.array([n]), 1 / n, 0.0, MassBalance(1.0, 0, 0.0), float("nan"), float("nan"))
    last = np.zeros(batch.n_sessions)
    if isinstance(estimator, TermsEstimator | Magic):
        last = estimator.terms(batch).last_log_weight
    return _Weights(
        stats.ess(),
        float(stats.largest_share().max()),
        float(stats.log_largest.max()),
        mass_balance(stats),
        pareto_k(last),
        tail_mass(last),
    )


def _interval(
    method: IntervalMethod, value: float, influence: np.ndarray, draws: np.ndarray, level: float
) -> Interval:
    if method == "bootstrap":
        return percentile_interval(draws, level, degrees_of_freedom(influence))
    make = student_t if method == "student-t" else empirical_likelihood
    return make(value + influence, level)


def _widened(interval: Interval, value: float, error: float | None, total: float | None) -> Interval:
    """Both arms scaled by what the ensemble's spread adds to the standard error."""
    if not error or total is None or total == error:
        return interval
    factor = total / error
    low, high = value - (value - interval.low) * factor, value + (interval.high - value) * factor
    return Interval(low=low, high=high, level=interval.level, method=f"{interval.method}+ensemble")


def _findings(
    value: float,
    batch: SessionBatch,
    weights: _Weights,
    influence: np.ndarray,
    interval: Interval,
    evidence: Evidence | None,
) -> Findings:
    return Findings(
        value=value,
        n_sessions=batch.n_sessions,
        ess=float(weights.ess.min()),
        largest_share=weights.largest_share,
        log_largest=weights.log_largest,
        mass=weights.mass,
        pareto_k=weights.pareto_k,
        degrees_of_freedom=degrees_of_freedom(influence),
        bounded=math.isfinite(interval.width),
        evidence=evidence or Evidence(),
    )


def _diagnostics(
    weights: _Weights, findings: Findings, draws: np.ndarray, batch: SessionBatch
) -> dict[str, float | None]:
    cut = batch.truncated & ~batch.terminated
    numbers = {
        "ess_min": findings.ess,
        "ess_last": float(weights.ess[-1]),
        "max_weight_share": weights.largest_share,
        "log_max_weight": weights.log_largest,
        "tail_mass": weights.tail_mass,
        "pareto_k": weights.pareto_k,
        "mean_weight": weights.mass.covered,
        "missing_mass": weights.mass.missing_at_least,
        "degrees_of_freedom": findings.degrees_of_freedom,
        "undefined_resamples": float(np.isnan(draws).mean()),
        "truncated_share": float(cut.mean()),
    }
    return {name: number if math.isfinite(number) else None for name, number in numbers.items()}
