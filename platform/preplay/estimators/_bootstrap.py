"""Cluster bootstrap over sessions that normalises again inside each resample, without a loop per resample.

A block of sessions becomes a dense matrix of its terms per step; a matrix of resampling counts times it gives
the sums of a thousand resamples at once. Cost: resamples × turns multiply-adds; memory: resamples × steps.

Shapes: B resamples, S sessions, T steps, K steps of the longest session of a block.
"""

from collections.abc import Iterator

import numpy as np

from preplay.estimators._logspace import exp_below
from preplay.estimators._terms import Terms
from preplay.seeding import numpy_rng

_ROWS = 1000
"""Resamples at a time."""
_BLOCK = 512
"""Sessions at a time."""
_EXACT_UP_TO = 256
"""Sessions up to which counts are multinomial; above, Poisson(1), whose total varies by about 6 % at most."""


def resample_terms(terms: Terms, resamples: int, seed: int) -> np.ndarray:
    """The estimate on each resample of the sessions, float64 [resamples]; NaN where a resample has no weight."""
    chunks = [
        _resample_chunk(terms, min(_ROWS, resamples - first), seed, first)
        for first in range(0, resamples, _ROWS)
    ]
    return np.concatenate(chunks)


def session_counts(n_sessions: int, rows: int, seed: int, first: int) -> Iterator[tuple[slice, np.ndarray]]:
    """How often each session is drawn in each of ``rows`` resamples: blocks of float64 [rows, block]."""
    if n_sessions <= _EXACT_UP_TO:
        drawn = numpy_rng(seed, "bootstrap", first).integers(0, n_sessions, (rows, n_sessions))
        cells = drawn + n_sessions * np.arange(rows)[:, None]
        counts = np.bincount(cells.ravel(), minlength=rows * n_sessions).astype(np.float64)
        yield slice(0, n_sessions), counts.reshape(rows, n_sessions)
        return
    for start in range(0, n_sessions, _BLOCK):
        block = slice(start, min(start + _BLOCK, n_sessions))
        rng = numpy_rng(seed, "bootstrap", first, start)
        size = block.stop - block.start
        draws = np.frombuffer(rng.bytes(2 * rows * size), np.uint16)
        yield block, _POISSON[draws].reshape(rows, size)


def _poisson_table() -> np.ndarray:
    """Poisson(1) quantiles of the 65,536 equal parts of [0, 1]: one look-up per draw."""
    probabilities = np.exp(-1.0) / np.cumprod(np.maximum(np.arange(12), 1.0))
    return np.searchsorted(np.cumsum(probabilities), (np.arange(65536) + 0.5) / 65536).astype(np.float64)


_POISSON = _poisson_table()


def _resample_chunk(terms: Terms, rows: int, seed: int, first: int) -> np.ndarray:
    counts = session_counts(len(terms.base), rows, seed, first)
    if terms.normaliser == "count":
        return _means(terms.session_values()[terms.layout.order], counts, rows)
    return _ratios(terms, counts, rows)


def _means(values: np.ndarray, counts: Iterator[tuple[slice, np.ndarray]], rows: int) -> np.ndarray:
    total, size = np.zeros(rows), np.zeros(rows)
    for block, count in counts:
        total += count @ values[block]
        size += count.sum(1)
    return total / size


def _ratios(terms: Terms, counts: Iterator[tuple[slice, np.ndarray]], rows: int) -> np.ndarray:
    steps, top = terms.layout.n_steps, terms.stats.log_largest
    numerator, weights = np.zeros((rows, steps)), np.zeros((rows, steps))
    base, size = np.zeros(rows), np.zeros(rows)
    base_by_rank = terms.base[terms.layout.order]
    for block, count in counts:
        for part in _parts(block, terms.layout.lengths):
            picked = count[:, part.start - block.start : part.stop - block.start]
            _add_part(terms, part, picked, numerator, weights)
        base += count @ base_by_rank[block]
        size += count.sum(1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return base / size + np.where(np.isneginf(top), np.nan, numerator / weights).sum(1)


def _parts(block: slice, lengths: np.ndarray) -> Iterator[slice]:
    """Cut a block where sessions get much shorter, so that padding at most doubles the work."""
    start = block.start
    while start < block.stop:
        half = np.searchsorted(-lengths[: block.stop], -(lengths[start] // 2), side="right")
        stop = min(block.stop, max(int(half), start + 32))
        yield slice(start, stop)
        start = stop


def _add_part(
    terms: Terms, part: slice, count: np.ndarray, numerator: np.ndarray, weights: np.ndarray
) -> None:
    """Add sessions ``part`` to the sums per resample and step, relative to the largest weight at the step."""
    layout, top = terms.layout, terms.stats.log_largest
    lengths = layout.lengths[part]
    k = int(lengths[0])
    steps = np.arange(k)
    inside = steps < lengths[:, None]
    rows = layout.starts[np.minimum(steps, lengths[:, None] - 1)] + np.arange(part.start, part.stop)[:, None]
    weight = exp_below(terms.log_weight[rows], top[:k])
    numerator[:, :k] += count @ (weight * np.where(inside, terms.x[rows] * terms.factors[:k], 0.0))
    weights[:, :k] += count @ weight
    if k < len(top):
        last = terms.last_log_weight[part]
        own_top = last.max()
        rest = count @ exp_below(last, own_top)
        weights[:, k:] += rest[:, None] * exp_below(own_top, top[k:])
