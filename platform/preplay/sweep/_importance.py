"""Which searched fields the figure depends on."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestRegressor
from sklearn.inspection import permutation_importance

LEAST_TRIALS = 8


def importances(
    parameters: Sequence[Mapping[str, Any]], values: Sequence[float], *, seed: int = 0
) -> dict[str, float]:
    """Share of each field in what a forest explains of the values, by permutation; empty below eight trials.

    Fields that were not searched in a trial (their condition failed) form a class of their own.
    """
    names = sorted({name for chosen in parameters for name in chosen})
    if len(values) < LEAST_TRIALS or not names or np.ptp(values) == 0:
        return {}
    columns = np.array(
        [[_code(chosen.get(name), name, parameters) for name in names] for chosen in parameters]
    )
    ranks = np.argsort(np.argsort(values)) / (len(values) - 1)  # outliers must not decide
    forest = RandomForestRegressor(200, min_samples_leaf=2, random_state=seed, n_jobs=1).fit(columns, ranks)
    found = permutation_importance(forest, columns, ranks, n_repeats=20, random_state=seed)
    weight = np.maximum(np.asarray(found["importances_mean"]), 0)  # pyright: ignore[reportArgumentType]
    total = weight.sum() or 1.0
    shares = zip(names, (weight / total).tolist(), strict=True)
    return dict(sorted(shares, key=lambda item: -item[1]))


def _code(value: Any, name: str, parameters: Sequence[Mapping[str, Any]]) -> float:
    """A number per value: numbers as they are, other values by their order, absence below all."""
    if value is None:
        return -1e9
    if isinstance(value, bool) or not isinstance(value, int | float):
        known = sorted({str(chosen[name]) for chosen in parameters if name in chosen})
        return float(known.index(str(value)))
    return float(value)
