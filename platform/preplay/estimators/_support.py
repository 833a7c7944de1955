"""Whether the logs cover what the target does, in feature space: distances to the nearest logged pairs.

Shapes: N logged (state, action) pairs, M target pairs, D features.
"""

from dataclasses import dataclass

import numpy as np

from preplay.errors import PreplayError
from preplay.seeding import numpy_rng


@dataclass(frozen=True)
class SupportCoverage:
    """How far target pairs lie from logged ones.

    Args:
        share_beyond: Share of the target pairs farther from their k-th logged neighbour than ``radius``.
        radius: 95 % quantile of that distance among logged pairs, neighbours of the own session left out.
        distances: float64 [M].
        energy_distance: Energy distance between the two samples of pairs, in units of the logged pairs'
            mean distance; 0 for equal laws.
    """

    share_beyond: float
    radius: float
    distances: np.ndarray
    energy_distance: float


def support_coverage(
    logged: np.ndarray,
    target: np.ndarray,
    sessions: np.ndarray | None = None,
    *,
    neighbours: int = 5,
    quantile: float = 0.95,
    at_most: int = 20_000,
    seed: int = 0,
) -> SupportCoverage:
    """Compare target pairs with the training split's.

    Args:
        logged: float [N, D], pairs of the training split, already scaled so that distances mean something.
        target: float [M, D].
        sessions: int [N], session of each logged pair; neighbours of the same session do not count for the
            radius.
        neighbours: k of the distance.
        quantile: Share of the logged pairs within the radius: about 1 − quantile of an on-policy target
            lies beyond.
        at_most: Logged pairs compared with, drawn at random.
        seed: Of the draws.
    """
    if logged.ndim != 2 or target.ndim != 2 or logged.shape[1] != target.shape[1]:
        raise PreplayError(f"pairs of shape {logged.shape} and {target.shape} cannot be compared.")
    rng = numpy_rng(seed, "support")
    picked = rng.permutation(len(logged))[:at_most]
    reference = np.asarray(logged[picked], np.float32)
    groups = np.arange(len(logged))[picked] if sessions is None else np.asarray(sessions)[picked]
    probes = rng.permutation(len(reference))[:2000]
    k = min(neighbours, max(len(reference) - 1, 1))
    own = _kth_distance(reference[probes], reference, k, groups[probes], groups)
    own = own[np.isfinite(own)]
    if len(own) == 0:
        raise PreplayError("one session alone cannot say what is near.", fix="Log more sessions.")
    radius = float(np.quantile(own, quantile))
    distances = _kth_distance(np.asarray(target, np.float32), reference, k)
    beyond = float(np.mean(distances > radius * (1 + 1e-6)))
    a, b = reference[probes], target[rng.permutation(len(target))[:2000]].astype(np.float32)
    return SupportCoverage(beyond, radius, distances, _energy_distance(a, b))


def _kth_distance(
    rows: np.ndarray,
    reference: np.ndarray,
    k: int,
    row_groups: np.ndarray | None = None,
    groups: np.ndarray | None = None,
) -> np.ndarray:
    """Distance to the k-th nearest reference row outside the own group, float64; inf where there are fewer."""
    result = np.empty(len(rows))
    norms = np.einsum("nd,nd->n", reference, reference)
    for start in range(0, len(rows), 512):
        part = rows[start : start + 512]
        squares = norms - 2 * part @ reference.T + np.einsum("nd,nd->n", part, part)[:, None]
        if groups is not None and row_groups is not None:
            squares[row_groups[start : start + 512, None] == groups] = np.inf
        nearest = np.partition(squares, k - 1, axis=1)[:, k - 1]
        result[start : start + 512] = np.sqrt(np.maximum(nearest, 0))
    return result


def _energy_distance(a: np.ndarray, b: np.ndarray) -> float:
    """2 E|A − B| − E|A − A'| − E|B − B'| over E|A − A'|, with distinct pairs (unbiased: may fall below 0)."""
    within_a, within_b = _mean_distance(a), _mean_distance(b)
    if within_a == 0:
        return 0.0
    return float((2 * _distances(a, b).mean() - within_a - within_b) / within_a)


def _mean_distance(rows: np.ndarray) -> float:
    n = len(rows)
    return float(_distances(rows, rows).sum() / (n * (n - 1))) if n > 1 else 0.0


def _distances(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    squares = (a * a).sum(1)[:, None] + (b * b).sum(1) - 2 * a @ b.T
    return np.sqrt(np.maximum(squares, 0))
