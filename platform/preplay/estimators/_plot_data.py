"""The numbers behind the plots of a report, as plain lists that survive JSON."""

from collections.abc import Sequence

import numpy as np
from pydantic import BaseModel

from preplay.estimators._batch import SessionBatch
from preplay.estimators._diagnostics import clip_grid
from preplay.estimators._distribution import ReturnDistribution
from preplay.estimators._estimators import TermsEstimator
from preplay.estimators._propensity_model import Calibration
from preplay.estimators._results import Estimate

Numbers = list[float | None]
"""None where undefined or unbounded."""


class ForestRow(BaseModel):
    """One policy or estimator of a forest plot."""

    label: str
    value: float | None
    low: float | None
    high: float | None
    verdict: str


class WeightHistogram(BaseModel):
    """Base-10 logarithms of the sessions' weights."""

    edges: Numbers
    counts: list[int]
    zero_weights: int


class Curve(BaseModel):
    """One line; ``low`` and ``high`` are empty when there is no band."""

    x: Numbers
    y: Numbers
    low: Numbers = []
    high: Numbers = []


def forest(estimates: Sequence[Estimate], label: str = "policy") -> list[ForestRow]:
    """One row per estimate, labelled by ``policy`` or ``estimator``; a withheld value keeps its row."""
    return [
        ForestRow(
            label=getattr(e, label),
            value=e.value,
            low=_plain([e.interval.low])[0] if e.value is not None else None,
            high=_plain([e.interval.high])[0] if e.value is not None else None,
            verdict=e.verdict,
        )
        for e in estimates
    ]


def weight_histogram(estimator: TermsEstimator, batch: SessionBatch, bins: int = 30) -> WeightHistogram:
    """Histogram of the last cumulative weight of each session."""
    log10 = estimator.terms(batch).last_log_weight / np.log(10)
    finite = log10[np.isfinite(log10)]
    if len(finite) == 0:
        return WeightHistogram(edges=[], counts=[], zero_weights=len(log10))
    counts, edges = np.histogram(finite, bins)
    return WeightHistogram(edges=_plain(edges), counts=counts.tolist(), zero_weights=len(log10) - len(finite))


def ess_per_step(estimator: TermsEstimator, batch: SessionBatch) -> Curve:
    """Effective sessions at each turn."""
    ess = estimator.statistics(batch).ess()
    return Curve(x=_plain(np.arange(len(ess))), y=_plain(ess))


def reliability(calibration: Calibration) -> Curve:
    """Observed against predicted frequency."""
    return Curve(x=_plain(calibration.predicted), y=_plain(calibration.observed))


def clip_curve(estimator: TermsEstimator, batch: SessionBatch) -> Curve:
    """Estimate against the largest weight kept; None on the x axis is no clipping."""
    points = clip_grid(estimator, batch)
    return Curve(x=_plain([p.clip for p in points]), y=_plain([p.value for p in points]))


def cdf_curve(
    distribution: ReturnDistribution, *, points: int = 60, level: float = 0.95, seed: int = 0
) -> Curve:
    """CDF of the target's return with its simultaneous band."""
    x = np.linspace(distribution.returns.min(), distribution.returns.max(), points)
    low, high = distribution.band(x, level=level, seed=seed)
    return Curve(x=_plain(x), y=_plain(distribution.cdf(x)), low=_plain(low), high=_plain(high))


def _plain(values: Sequence[float] | np.ndarray) -> Numbers:
    return [float(v) if np.isfinite(v) else None for v in values]
