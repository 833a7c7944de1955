"""Field types that always survive JSON, which knows neither NaN nor infinity nor numpy."""

import math
from typing import Annotated, Any

import numpy as np
from pydantic import BeforeValidator


def _plain(value: Any) -> Any:
    """The same value made of JSON types; NaN and infinities become None (undefined, unbounded)."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value if value is None or isinstance(value, bool | int | str) else str(value)


def _coarse(value: Any) -> Any:
    """``_plain`` with five significant digits: enough for a plot, and a third of the bytes."""
    return [float(f"{v:.5g}") if isinstance(v, float) else v for v in _plain(value)]


Number = Annotated[float | None, BeforeValidator(_plain)]
"""A float, or None where it is undefined or unbounded; NaN and infinities are read as None."""

Series = Annotated[list[float | None], BeforeValidator(_plain)]
"""One number per turn, from turn 0."""

Points = Annotated[list[float | None], BeforeValidator(_coarse)]
"""Coordinates of a plotted curve, rounded."""

Mapping = Annotated[dict[str, Any], BeforeValidator(_plain)]
"""Any nesting of JSON types; other objects are written as text."""
