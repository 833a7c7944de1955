"""Geometry of the page's plots; the templates draw them as SVG that scales and follows the colour scheme."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from preplay.report._numbers import core_values, edges
from preplay.report._schema import EvaluationReport

_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
SPARK_WIDTH, SPARK_HEIGHT = 100.0, 40.0


@dataclass(frozen=True)
class Axis:
    """A horizontal axis whose positions are percentages of its width."""

    low: float
    high: float
    ticks: tuple[float, ...]
    decimals: int

    def at(self, value: float) -> float:
        """Position of a value; values beyond the axis, infinities among them, stand at its ends."""
        return round(min(100.0, max(0.0, 100 * (value - self.low) / (self.high - self.low))), 2)


def axis_for(values: Iterable[float | None], most_ticks: int = 6) -> Axis:
    """An axis with a little room at both ends and ticks at round numbers."""
    numbers = [value for value in values if value is not None and math.isfinite(value)] or [0.0, 1.0]
    low, high = min(numbers), max(numbers)
    room = 0.06 * (high - low) or 0.5 * abs(low) or 0.5
    low, high = low - room, high + room
    step = _round_step((high - low) / most_ticks)
    first, last = math.ceil(low / step), math.floor(high / step)
    decimals = next(d for d in range(12) if math.isclose(round(step, d), step))
    return Axis(low, high, tuple(step * i for i in range(first, last + 1)), decimals)


def _round_step(step: float) -> float:
    power = 10.0 ** math.floor(math.log10(step))
    return next(factor * power for factor in _STEPS if factor * power >= step * (1 - 1e-9))


def forest_axis(report: EvaluationReport) -> Axis:
    """Covers each estimate, truth and logged mean; an interval that is far wider than the others is cut."""
    bounded = [edges(policy) for policy in report.policies]
    core = core_values(report) or [edge for pair in bounded for edge in pair] or [0.0, 1.0]
    widths = [max(pair) - min(pair) for pair in bounded if pair]
    room = max(max(core) - min(core), median(widths) if widths else 0.0)
    low, high = min(core) - room, max(core) + room
    return axis_for([*core, *(min(high, max(low, edge)) for pair in bounded for edge in pair)])


def check_axis(report: EvaluationReport) -> Axis:
    """Covers the logged means, their intervals and the model's predictions."""
    values: list[float | None] = []
    for policy in report.behavior:
        values += [policy.mean_return, policy.predicted]
        if policy.interval:
            values += [policy.interval.low, policy.interval.high]
    return axis_for(values)


def spark_path(series: Sequence[float | None], top: float, length: int) -> str:
    """SVG path of a series over ``length`` turns with 0 at the bottom; it breaks where a value is missing."""
    parts, pen = [], "M"
    for i, value in enumerate(series):
        if value is None:
            pen = "M"
            continue
        x = SPARK_WIDTH * i / max(1, length - 1)
        y = SPARK_HEIGHT * (1 - 0.95 * min(1.0, max(0.0, value / top)))
        parts.append(f"{pen}{x:.1f} {y:.1f}")
        pen = "L"
    return "".join(parts)


def top_of(many: Iterable[Sequence[float | None]]) -> float:
    """The largest value of many series, the common top of their plots."""
    return max((v for series in many for v in series if v is not None), default=1.0) or 1.0
