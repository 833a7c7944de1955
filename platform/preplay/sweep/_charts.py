"""Geometry of the sweep page's plots, in the units of a 640 x 260 drawing; the template draws them as SVG."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from preplay.report import axis_for
from preplay.sweep._records import SweepResult, TrialRecord, pareto_front, signed

WIDTH, HEIGHT = 640.0, 260.0
LEFT, RIGHT, TOP, BOTTOM = 60.0, 20.0, 14.0, 36.0


@dataclass(frozen=True)
class Tick:
    """A label and where it stands."""

    at: float
    text: str


@dataclass(frozen=True)
class Line:
    """A polyline of one trial."""

    trial: int
    kind: str
    points: str


@dataclass(frozen=True)
class Dot:
    """One trial in a scatter plot."""

    trial: int
    kind: str
    x: float
    y: float
    title: str


@dataclass(frozen=True)
class Chart:
    """Lines, dots and both axes."""

    x: list[Tick]
    y: list[Tick]
    lines: list[Line]
    dots: list[Dot]


@dataclass(frozen=True)
class Column:
    """One vertical axis of the parallel coordinates."""

    name: str
    at: float
    ticks: list[Tick]


def learning_curves(result: SweepResult) -> Chart:
    """The first metric over the budget, one line per trial."""
    name = result.config.metric.name
    curves = {
        t.number: [(row["budget"], row[name]) for row in t.history if name in row] for t in result.trials
    }
    shown = {number: points for number, points in curves.items() if points}
    ys = [y for points in shown.values() for _, y in points]
    # One trial that went astray must not flatten the others.
    top = sorted(ys)[int(0.95 * (len(ys) - 1))] if ys else 1.0
    vertical = axis_for([y for y in ys if y <= top * 1.5 or y <= 0])
    budgets = sorted({x for points in shown.values() for x, _ in points})
    most = result.config.scheduler.budget

    def place(x: float, y: float) -> str:
        return f"{_across(100 * x / most):.1f},{_up(vertical.at(y)):.1f}"

    kinds = {t.number: kind_of(t, result) for t in result.trials}
    lines = [
        Line(
            number,
            kinds[number],
            " ".join(place(x, y) for x, y in ([(0, points[0][1])] * (len(points) == 1) + points)),
        )
        for number, points in shown.items()
    ]
    return Chart(
        [Tick(_across(100 * b / most), f"{b:g}") for b in budgets],
        [Tick(_up(vertical.at(v)), f"{v:.{vertical.decimals}f}") for v in vertical.ticks],
        lines,
        [],
    )


def cost_front(result: SweepResult) -> tuple[Chart, str]:
    """Accuracy against cost of fully trained trials, and what the cost is."""
    metric = result.config.metric
    done = [t for t in result.trials if t.status == "finished"]
    measured = all("cost" in t.metrics for t in done)
    costs = [t.metrics["cost"] if measured else t.seconds for t in done]
    values = [t.metrics[metric.name] for t in done]
    front = set(pareto_front([(c, signed(t, metric)) for c, t in zip(costs, done, strict=True)]))
    across, up = axis_for(costs), axis_for(values)
    dots = [
        Dot(
            t.number,
            "front" if i in front else "plain",
            _across(across.at(costs[i])),
            _up(up.at(values[i])),
            f"trial {t.number}: {metric.name} {values[i]:.4g}, cost {costs[i]:.4g}",
        )
        for i, t in enumerate(done)
    ]
    chart = Chart(
        [Tick(_across(across.at(v)), f"{v:.{across.decimals}f}") for v in across.ticks],
        [Tick(_up(up.at(v)), f"{v:.{up.decimals}f}") for v in up.ticks],
        [],
        dots,
    )
    return chart, "millions of multiplications per use" if measured else "seconds of training"


def parallel_coordinates(result: SweepResult) -> tuple[list[Column], list[Line]]:
    """One axis per searched field and one for the metric, one line per trial that reported."""
    metric, space = result.config.metric, result.config.space
    shown = [t for t in result.trials if metric.name in t.metrics and t.parameters]
    names = [*space, metric.name]
    scales = {
        name: _Scale.of([t.parameters.get(name) for t in shown], bool(space[name].loguniform))
        for name in space
    }
    scales[metric.name] = _Scale.of([t.metrics[metric.name] for t in shown], False)
    at = {name: _across(100 * i / max(1, len(names) - 1)) for i, name in enumerate(names)}
    columns = [Column(name, at[name], scales[name].ticks()) for name in names]
    lines = []
    for t in sorted(shown, key=lambda t: kind_of(t, result) == "member"):
        values = [*(t.parameters.get(name) for name in space), t.metrics[metric.name]]
        points = [f"{at[n]:.1f},{_up(scales[n].at(v)):.1f}" for n, v in zip(names, values, strict=True)]
        lines.append(Line(t.number, kind_of(t, result), " ".join(points)))
    return columns, lines


def kind_of(trial: TrialRecord, result: SweepResult) -> str:
    """How a trial is drawn."""
    return "member" if trial.number in result.members else trial.status


@dataclass(frozen=True)
class _Scale:
    """Values to percent: numbers by size (or logarithm), others by order; a missing value stands at the bottom."""

    known: list[str] | None
    low: float = 0.0
    high: float = 1.0
    log: bool = False

    @classmethod
    def of(cls, values: Sequence[Any], log: bool) -> "_Scale":
        given = [v for v in values if v is not None]
        if any(isinstance(v, bool) or not isinstance(v, int | float) for v in given):
            return cls(sorted({str(v) for v in given}))
        numbers = [math.log(v) if log else float(v) for v in given] or [0.0]
        low, high = min(numbers), max(numbers)
        return cls(None, low, high if high > low else low + 1, log)

    def at(self, value: Any) -> float:
        if value is None:
            return 0.0
        if self.known is not None:
            return 8 + 92 * self.known.index(str(value)) / max(1, len(self.known) - 1)
        number = math.log(value) if self.log else float(value)
        return 8 + 92 * (number - self.low) / (self.high - self.low)

    def ticks(self) -> list[Tick]:
        if self.known is not None:
            return [Tick(_up(self.at(name)), name) for name in self.known]
        ends = [math.exp(v) if self.log else v for v in (self.low, self.high)]
        return [Tick(_up(self.at(v)), f"{v:.3g}") for v in ends]


def _across(percent: float) -> float:
    return LEFT + (WIDTH - LEFT - RIGHT) * percent / 100


def _up(percent: float) -> float:
    return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * percent / 100
