"""The curves of the report: weights, clipping, returns, calibration of propensities, differences between policies."""

from collections.abc import Mapping

import numpy as np
from sklearn.cluster import KMeans

from preplay.estimators import (
    Resampled,
    ReturnDistribution,
    SessionBatch,
    TermsEstimator,
    cdf_curve,
    clip_grid,
    compare_resampled,
    estimate_propensities,
    get_estimator,
    weight_histogram,
)
from preplay.pipeline._context import Context
from preplay.pipeline._weighted import WeightedSessions
from preplay.report import (
    CalibrationBin,
    ClippedValue,
    Difference,
    Propensities,
    ReturnCurve,
    Weights,
)
from preplay.seeding import derive_seed, numpy_rng

BINS, POINTS = 24, 40
CLUSTERS = 8
FOLDS = 5
MOST_SESSIONS = 600
"""Sessions that the propensity check looks at; more would only make its points a little steadier."""


def weights_of(weighted: WeightedSessions, corrected: SessionBatch | None) -> Weights | None:
    """Weights of whole sessions, and the doubly robust value (or weighted PDIS without Q) under clipping."""
    batch = weighted.batch
    if batch.log_ratio is None:
        return None
    histogram = weight_histogram(_terms("wpdis"), batch, BINS)
    clipped = _terms("wpdis" if corrected is None else "wdr")
    points = clip_grid(clipped, corrected or batch)
    return Weights(
        log10_edges=histogram.edges,
        counts=histogram.counts,
        zero_weights=histogram.zero_weights,
        clips=[ClippedValue(clip=p.clip, value=p.value, clipped_share=p.clipped_share) for p in points],
        clip_estimator="wpdis/1" if corrected is None else "model.wdr/1",
        loggers=weighted.loggers,
        starts_differ=weighted.starts_differ,
    )


def returns_of(batch: SessionBatch, *, level: float, seed: int) -> ReturnCurve | None:
    """Distribution of a session's return under the policy, with its band."""
    if batch.log_ratio is None:
        return None
    curve = cdf_curve(ReturnDistribution.of(batch), points=POINTS, level=level, seed=seed)
    return ReturnCurve(x=curve.x, cdf=curve.y, low=curve.low, high=curve.high)


def logged_returns(batch: SessionBatch) -> ReturnCurve:
    """The same of the logged sessions, at the same points."""
    logged = ReturnDistribution(batch.returns, np.zeros(batch.n_sessions))
    x = np.linspace(batch.returns.min(), batch.returns.max(), POINTS)
    return ReturnCurve(x=x.tolist(), cdf=logged.cdf(x).tolist())


def resampled_headline(context: Context, corrected: SessionBatch | None) -> Resampled | None:
    """The headline's resamples, equal draws for every policy; None where it is not a doubly robust estimate."""
    if corrected is None:
        return None
    wdr = _terms("wdr")
    draws = wdr.resampled(corrected, context.config.evaluation.resamples, context.config.seed)
    return Resampled(wdr.value(wdr.statistics(corrected)), draws)


def differences(
    policies: Mapping[str, Resampled], level: float, method: str | None = None
) -> list[Difference]:
    """Every pair, corrected for the number of pairs; ``method`` names draws that are no bootstrap."""
    if len(policies) < 2:
        return []
    pairs = [Difference.model_validate(vars(pair)) for pair in compare_resampled(policies, level=level)]
    if method is None:
        return pairs
    both = ("interval", "simultaneous")
    return [
        p.model_copy(update={name: getattr(p, name).model_copy(update={"method": method}) for name in both})
        for p in pairs
    ]


def propensity_check(context: Context) -> Propensities | None:
    """How well the logged agents' next action, as one of a few groups, follows from the state."""
    session = np.repeat(np.arange(context.batch.n_sessions), context.batch.lengths)
    chosen = numpy_rng(context.config.seed, "propensity sessions").permutation(context.batch.n_sessions)
    rows = np.flatnonzero(np.isin(session, chosen[:MOST_SESSIONS]))
    actions = context.features.action[rows]
    distinct = np.unique(actions, axis=0)
    count = min(CLUSTERS, len(distinct))
    if count < 2 or len(np.unique(session[rows])) < FOLDS:
        return None
    seed = derive_seed(context.config.seed, "propensity clusters") % 2**32
    cluster = KMeans(count, random_state=seed).fit(distinct).predict(actions)
    state = context.features.state[rows]
    return _checked(state, np.asarray(cluster, np.int64), session[rows], count, context.config.seed)


def _checked(
    state: np.ndarray, cluster: np.ndarray, session: np.ndarray, count: int, seed: int
) -> Propensities:
    found = estimate_propensities(state, cluster, session, count, folds=FOLDS, seed=seed).calibration
    usual = np.bincount(cluster, minlength=count) / len(cluster)
    bins = zip(found.predicted, found.observed, found.count, strict=True)
    return Propensities(
        clusters=count,
        ece=found.ece,
        brier=found.brier,
        base_brier=float(1 - np.square(usual).sum()),
        reliability=[CalibrationBin(predicted=p, observed=o, count=n) for p, o, n in bins],
    )


def _terms(name: str) -> TermsEstimator:
    estimator = get_estimator(name)
    assert isinstance(estimator, TermsEstimator)
    return estimator
