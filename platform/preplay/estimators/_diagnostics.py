"""What the weights and the model say about how far an estimate can be trusted.

Shapes: S sessions, T steps.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy.stats import t as t_distribution

from preplay.estimators._batch import SessionBatch
from preplay.estimators._estimators import TermsEstimator, temporal_differences
from preplay.estimators._protocol import Estimator, get_estimator
from preplay.estimators._results import Interval
from preplay.estimators._terms import Stats, Terms


def pareto_k(log_weights: np.ndarray) -> float:
    """Shape of the weights' upper tail: above 0.5 the variance, above 1 the mean does not exist.

    Generalised Pareto fit of Zhang & Stephens 2009 to the largest min(n/5, 3·√n) weights, as in PSIS
    (Vehtari et al. 2024), with its prior that pulls small tails towards 0.5. −inf when the tail has no
    spread, NaN for fewer than 25 weights or fewer than 10 distinct ones in the tail.
    """
    finite = np.sort(log_weights[np.isfinite(log_weights)])
    n = len(log_weights)
    tail = int(min(0.2 * n, 3 * np.sqrt(n)))
    if n < 25 or len(finite) < tail + 1 or tail < 5:
        return float("nan")
    scaled = np.exp(finite[-tail - 1 :] - finite[-1])
    if scaled[0] > 1 - 1e-9:
        return float("-inf")
    excess = scaled[1:] - scaled[0]
    excess = excess[excess > 0]
    if len(excess) < 5:  # ties below a few large weights: heavy when one of them outweighs the rest
        return float("inf") if excess[-1] > 0.5 * scaled.sum() else float("nan")
    if len(np.unique(np.round(finite[-tail:], 9))) < 10:  # a few distinct weights: no smooth tail to fit
        return float("nan")
    return _generalised_pareto_shape(excess)


def tail_mass(log_weights: np.ndarray, share: float = 0.01) -> float:
    """Share of all weight that the heaviest ``share`` of the sessions carry (at least one session)."""
    top = log_weights.max()
    if np.isneginf(top):
        return float("nan")
    weight = np.sort(np.exp(log_weights - top))[::-1]
    return float(weight[: max(int(share * len(weight)), 1)].sum() / weight.sum())


@dataclass(frozen=True)
class MassBalance:
    """Whether the weights average 1, as they must when the logs cover all that the target does.

    Args:
        covered: Mean weight at the step where it is lowest.
        step: That step.
        missing_at_least: 1 minus the upper end of the 99 % interval of the mean weight, not below 0.
    """

    covered: float
    step: int
    missing_at_least: float


def mass_balance(stats: Stats) -> MassBalance:
    """Lowest mean weight over steps and the mass that is missing beyond chance there."""
    log_n, degrees = np.log(stats.n_sessions), max(stats.n_sessions - 1, 1)
    reach = t_distribution.ppf(0.995, degrees) if stats.n_sessions > 1 else np.inf
    with np.errstate(over="ignore", invalid="ignore"):
        mean = np.exp(stats.log_weights - log_n)
        square = np.exp(stats.log_squares - log_n)
        error = np.sqrt(np.maximum(square - mean**2, 0) / degrees)
        missing = np.nan_to_num(
            1 - mean - reach * np.maximum(error, 1e-12), nan=0.0, posinf=0.0, neginf=0.0
        ).clip(0, 1)
    step = int(np.argmax(missing)) if missing.any() else int(np.argmin(mean))
    return MassBalance(float(mean[step]), step, float(missing[step]))


@dataclass(frozen=True)
class ClipPoint:
    """The estimate with weights cut at ``clip``.

    Args:
        clip: Largest weight kept; infinite for none.
        value: The estimate.
        ess_last: Effective sessions at the last step.
        clipped_share: Share of the turns' weights that were cut.
    """

    clip: float
    value: float
    ess_last: float
    clipped_share: float


def clip_grid(
    estimator: TermsEstimator,
    batch: SessionBatch,
    clips: tuple[float, ...] = (1, 2, 5, 10, 20, 50, 100, np.inf),
) -> list[ClipPoint]:
    """How much the estimate hangs on its largest weights; a flat line reassures, a slope trades bias for variance."""
    terms = estimator.terms(batch)
    return [_clipped(terms, clip) for clip in clips]


@dataclass(frozen=True)
class OnPolicyCheck:
    """The logging policy's own value, estimated as if it were a target, against its logged mean return."""

    predicted: float
    observed: float
    difference: float
    interval: Interval
    passed: bool


def on_policy_check(
    estimator: Estimator,
    behaviour: SessionBatch,
    *,
    level: float = 0.95,
    tolerance: float = 0.0,
    resamples: int = 2000,
    seed: int = 0,
) -> OnPolicyCheck:
    """Evaluate the logging policy itself; passes when the difference's interval reaches within ``tolerance``.

    Args:
        estimator: The estimator to check, usually ``dm``.
        behaviour: The logs with q, v and ratios *of the logging policy*.
        level: Of the interval of the difference, from resamples shared by both.
        tolerance: A difference that does not matter, in the unit of the return.
        resamples, seed: Of the bootstrap.
    """
    mean = get_estimator("mean")
    predicted = estimator.value(estimator.statistics(behaviour))
    observed = mean.value(mean.statistics(behaviour))
    draws = estimator.resampled(behaviour, resamples, seed) - mean.resampled(behaviour, resamples, seed)
    if behaviour.n_sessions < 2 or np.isnan(draws).any():
        interval = Interval.unbounded(level, "paired bootstrap")
    else:
        low, high = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2])
        interval = Interval(low=float(low), high=float(high), level=level, method="paired bootstrap")
    passed = interval.low <= tolerance and interval.high >= -tolerance
    return OnPolicyCheck(predicted, observed, predicted - observed, interval, bool(passed))


def model_error(batch: SessionBatch) -> tuple[float, float]:
    """Mean discounted Bellman residual of Q̂ on the logged turns per session, and its standard error.

    Zero for the exact Q of the target whatever the logging policy. What it adds up to is the size of the
    correction that a doubly robust estimate makes before weighting.
    """
    batch.require("the model-error term", ("q", "v"))
    residual = batch.layout.by_step(temporal_differences(batch))
    per_session = batch.layout.session_sums(residual, batch.discounts)
    error = (
        float(per_session.std(ddof=1) / np.sqrt(len(per_session))) if len(per_session) > 1 else float("inf")
    )
    return float(per_session.mean()), error


def _clipped(terms: Terms, clip: float) -> ClipPoint:
    limit = np.log(clip)
    cut = replace(terms, log_weight=np.minimum(terms.log_weight, limit))
    share = float(np.mean(terms.log_weight > limit))
    return ClipPoint(float(clip), cut.stats.value(), float(cut.stats.ess()[-1]), share)


def _generalised_pareto_shape(excess: np.ndarray) -> float:
    n = len(excess)
    count = 30 + int(np.sqrt(n))
    quartile = excess[int(n / 4 + 0.5) - 1]
    theta = 1 / excess[-1] + (1 - np.sqrt(count / (np.arange(1, count + 1) - 0.5))) / (
        3 * max(quartile, 1e-300)
    )
    shape = -np.log1p(-theta[:, None] * excess).mean(1)
    likelihood = n * (np.log(theta / shape) + shape - 1)
    weight = np.exp(likelihood - likelihood.max())
    best = float(theta @ weight / weight.sum())
    k = float(np.log1p(-best * excess).mean())
    return (k * n + 0.5 * 10) / (n + 10)
