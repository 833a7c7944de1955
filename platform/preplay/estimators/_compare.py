"""Two or more target policies on the same logs: differences with their own intervals, corrected for multiplicity.

Shapes: P policies, B resamples.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from preplay.errors import PreplayError
from preplay.estimators._batch import SessionBatch
from preplay.estimators._protocol import Estimator
from preplay.estimators._results import Interval


@dataclass(frozen=True)
class Comparison:
    """``better`` minus ``other``.

    Args:
        difference: Of the two estimates.
        standard_error: From resamples that both share: what moves both cancels.
        interval: For this pair alone.
        p_value: Of no difference, two-sided, for this pair alone.
        adjusted_p_value: Holm's, over all pairs compared.
        simultaneous: Interval that holds for all pairs at once.
    """

    better: str
    other: str
    difference: float
    standard_error: float
    interval: Interval
    p_value: float
    adjusted_p_value: float
    simultaneous: Interval


@dataclass(frozen=True)
class Resampled:
    """An estimate and its bootstrap resamples, float64 [B]."""

    value: float
    draws: np.ndarray


def compare_policies(
    estimator: Estimator,
    batches: Mapping[str, SessionBatch],
    *,
    baseline: str | None = None,
    level: float = 0.95,
    resamples: int = 10_000,
    seed: int = 0,
) -> list[Comparison]:
    """All pairs, or every policy against ``baseline``; the same sessions under each policy.

    Raises:
        PreplayError: When the batches are not the same sessions.
    """
    _check_same(batches)
    found = {
        name: Resampled(
            estimator.value(estimator.statistics(batch)), estimator.resampled(batch, resamples, seed)
        )
        for name, batch in batches.items()
    }
    return compare_resampled(found, baseline=baseline, level=level)


def compare_resampled(
    policies: Mapping[str, Resampled], *, baseline: str | None = None, level: float = 0.95
) -> list[Comparison]:
    """``compare_policies`` for estimates that were resampled elsewhere, from equal seeds on equal sessions."""
    names = list(policies)
    values = np.array([policies[n].value for n in names])
    draws = np.stack([policies[n].draws for n in names])
    pairs = [(i, j) for i in range(len(names)) for j in range(i)]
    if baseline is not None:
        pairs = [(i, names.index(baseline)) for i in range(len(names)) if names[i] != baseline]
    pairs = [(i, j) if values[i] >= values[j] else (j, i) for i, j in pairs]
    if not pairs:
        raise PreplayError("a comparison needs at least two policies.")
    better, other = (list(side) for side in zip(*pairs, strict=True))
    differences, spread = values[better] - values[other], draws[better] - draws[other]
    raw = np.array([_p_value(s) for s in spread])
    adjusted, wide = holm(raw), simultaneous_intervals(differences, spread, level)
    return [
        Comparison(
            names[i],
            names[j],
            float(differences[k]),
            float(np.nanstd(spread[k], ddof=1)),
            _quantiles(spread[k], level),
            float(raw[k]),
            float(adjusted[k]),
            wide[k],
        )
        for k, (i, j) in enumerate(pairs)
    ]


def holm(p_values: np.ndarray) -> np.ndarray:
    """Holm's adjusted p-values: the chance of any false alarm among all tests stays below the level."""
    order = np.argsort(p_values)
    scaled = np.asarray(p_values)[order] * (len(p_values) - np.arange(len(p_values)))
    adjusted = np.empty(len(p_values))
    adjusted[order] = np.minimum(np.maximum.accumulate(scaled), 1.0)
    return adjusted


def simultaneous_intervals(values: np.ndarray, draws: np.ndarray, level: float = 0.95) -> list[Interval]:
    """Intervals that all hold together: the largest studentised deviation over the rows (max-t).

    Args:
        values: float64 [P], estimates or differences.
        draws: float64 [P, B], their resamples, drawn together.
        level: Of all of them at once.
    """
    error = np.nanstd(draws, axis=1, ddof=1)
    usable = ~np.isnan(draws).any(0)
    if usable.mean() < level:
        return [Interval.unbounded(level, "max-t bootstrap") for _ in values]
    scaled = np.divide(
        draws - values[:, None], error[:, None], out=np.zeros_like(draws), where=error[:, None] > 0
    )
    reach = float(np.quantile(np.abs(scaled[:, usable]).max(0), level)) * error
    ends = zip(values - reach, values + reach, strict=True)
    return [Interval(low=float(a), high=float(b), level=level, method="max-t bootstrap") for a, b in ends]


def _quantiles(draws: np.ndarray, level: float) -> Interval:
    tail = (1 - level) / 2
    if np.isnan(draws).mean() > tail:
        return Interval.unbounded(level, "paired bootstrap")
    low, high = np.nanquantile(draws, [tail, 1 - tail])
    return Interval(low=float(low), high=float(high), level=level, method="paired bootstrap")


def _p_value(draws: np.ndarray) -> float:
    """Two-sided bootstrap p-value; undefined resamples count for no difference."""
    n = len(draws)
    below, above = np.sum(~(draws > 0)), np.sum(~(draws < 0))
    return float(min(1.0, 2 * (min(below, above) + 1) / (n + 1)))


def _check_same(batches: Mapping[str, SessionBatch]) -> None:
    first = next(iter(batches.values()))
    for name, batch in batches.items():
        if not (np.array_equal(batch.offsets, first.offsets) and np.array_equal(batch.reward, first.reward)):
            raise PreplayError(f"policy {name!r} is evaluated on other sessions than the first one.")
