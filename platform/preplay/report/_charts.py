"""Charts of weights, clipping and returns: geometry in percent, each with the sentence that says what one sees.

Curves are drawn in a box of 100 by 100 that stretches; y grows downwards, as in SVG.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from preplay.report import _words
from preplay.report._curves import Propensities, ReturnCurve, Weights
from preplay.report._numbers import ValueFormat, plain
from preplay.report._plots import Axis, axis_for
from preplay.report._schema import EvaluationReport, PolicyResult

Numbers = Sequence[float | None]


@dataclass(frozen=True)
class Tick:
    """A mark on an axis: position in percent and its text."""

    at: float
    text: str


@dataclass(frozen=True)
class Shape:
    """An SVG path and the kind of mark it is: ``area``, ``bars``, ``curve``, ``reference`` or ``point``."""

    kind: str
    path: str


@dataclass(frozen=True)
class Chart:
    """One plot with its axes; ``sentence`` is its text alternative too."""

    title: str
    sentence: str
    across: str
    x: tuple[Tick, ...]
    y: tuple[Tick, ...]
    shapes: tuple[Shape, ...]


def policy_charts(policy: PolicyResult, report: EvaluationReport, fmt: ValueFormat) -> list[Chart]:
    """Weights, effective sessions, clipping and returns of one policy, as far as they are known."""
    weights, support, curve = policy.weights, policy.support, policy.returns
    charts = []
    if weights and weights.counts:
        charts.append(weight_chart(weights))
    if support and len(support.ess_per_step) > 1:
        charts.append(ess_chart(support.ess_per_step))
    if weights and weights.clips and policy.headline.verdict != "not identified":
        charts.append(clip_chart(weights, policy, fmt))
    if curve and any(value is not None for value in curve.cdf):
        charts.append(return_chart(curve, report.logged_returns, fmt))
    return charts


def weight_chart(weights: Weights) -> Chart:
    """Histogram of the sessions' weights on a logarithmic axis; the dashed line is a weight of 1."""
    edges = [edge for edge in weights.log10_edges if edge is not None]
    low, high = min([*edges, -0.5]), max([*edges, 0.5])
    x, top = Axis(low, high, (), 0), max(weights.counts)
    bars = "".join(
        f"M{x.at(a)} 100V{_up(count, top)}H{x.at(b)}V100Z"
        for a, b, count in zip(edges, edges[1:], weights.counts, strict=False)
        if count
    )
    one = Shape("reference", f"M{x.at(0)} 0V100")
    return Chart(
        "Weights of sessions",
        _words.weights(weights),
        "weight (dashed: 1)",
        _powers(x),
        (Tick(100, "0"), Tick(0, plain(top))),
        (Shape("bars", bars), one),
    )


def ess_chart(series: Numbers) -> Chart:
    """Effective sessions at each turn."""
    top = max((v for v in series if v is not None), default=1.0) or 1.0
    last = len(series) - 1
    path = _line([100 * i / last for i in range(len(series))], [_height(v, top) for v in series])
    return Chart(
        "Effective sessions",
        _words.effective(series),
        "turn",
        (Tick(0, "1"), Tick(100, str(len(series)))),
        (Tick(100, "0"), Tick(0, plain(top))),
        (Shape("curve", path),),
    )


def clip_chart(weights: Weights, policy: PolicyResult, fmt: ValueFormat) -> Chart:
    """The estimate against the largest weight kept, with the headline's interval behind it."""
    values = [point.value for point in weights.clips]
    interval = policy.headline.interval
    ends = [end for end in (interval.low, interval.high) if math.isfinite(end)]
    y = axis_for([*values, *ends], most_ticks=4)
    at = [100 * (i + 0.5) / len(values) for i in range(len(values))]
    heights = [None if v is None else 100 - y.at(v) for v in values]
    area = f"M0 {100 - y.at(interval.high):g}H100V{100 - y.at(interval.low):g}H0Z"
    names = ["∞" if p.clip is None else f"{p.clip:g}" for p in weights.clips]
    return Chart(
        "Clipping",
        _words.clipping(weights, interval, fmt),
        "largest weight kept",
        tuple(Tick(round(a, 2), name) for a, name in zip(at, names, strict=True)),
        _values(y),
        (Shape("area", area), Shape("curve", _line(at, heights)), Shape("point", _points(at, heights))),
    )


def return_chart(curve: ReturnCurve, logged: ReturnCurve | None, fmt: ValueFormat) -> Chart:
    """Cumulative distribution of a session's return, with its band, beside that of the logged sessions."""
    x = _across(curve)
    shapes = [Shape("curve", _steps(curve.x, curve.cdf, x))]
    if curve.low and curve.high:
        shapes.insert(0, Shape("area", _band(curve, x)))
    if logged and logged.x:
        shapes.append(Shape("reference", _steps(logged.x, logged.cdf, x)))
    return Chart(
        "Returns of sessions",
        _words.returns(curve, logged, fmt),
        "return at most" + " (dashed: logs)" * bool(logged and logged.x),
        tuple(Tick(x.at(t), _decimal(t, x)) for t in x.ticks),
        (Tick(100, "0"), Tick(50, "½"), Tick(0, "1")),
        tuple(shapes),
    )


def reliability_chart(propensities: Propensities) -> Chart:
    """Observed against predicted frequency of the logged actions' groups."""
    bins = propensities.reliability
    at, heights = [100 * b.predicted for b in bins], [100 - 100 * b.observed for b in bins]
    ticks = tuple(Tick(100 * share, f"{share:g}") for share in (0, 0.5, 1))
    return Chart(
        "Predictability of logged actions",
        _words.reliability(propensities),
        "predicted probability (up: observed)",
        ticks,
        tuple(Tick(100 - tick.at, tick.text) for tick in ticks),
        (
            Shape("reference", "M0 100L100 0"),
            Shape("curve", _line(at, heights)),
            Shape("point", _points(at, heights)),
        ),
    )


def _across(curve: ReturnCurve) -> Axis:
    values = [v for v in curve.x if v is not None]
    wide = axis_for(values, most_ticks=5)
    low, high = min(values), max(values)
    if low == high:
        return wide
    return Axis(low, high, tuple(t for t in wide.ticks if low <= t <= high), wide.decimals)


def _powers(x: Axis) -> tuple[Tick, ...]:
    """Powers of ten, at most four of them, 1 among them."""
    first, last = math.ceil(x.low), math.floor(x.high)
    step = max(1, math.ceil((last - first + 1) / 4))
    shown = [p for p in range(first, last + 1) if p % step == 0]
    plainly = first > -4 and last < 4
    return tuple(Tick(x.at(p), f"{10.0**p:g}" if plainly else f"10{_raised(p)}") for p in shown)


def _raised(exponent: int) -> str:
    return str(exponent).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))


def _values(y: Axis) -> tuple[Tick, ...]:
    return tuple(Tick(round(100 - y.at(t), 2), _decimal(t, y)) for t in y.ticks)


def _decimal(value: float, axis: Axis) -> str:
    return f"{value:.{axis.decimals}f}".replace("-", "−")


def _up(count: float, top: float) -> str:
    return f"{100 * (1 - count / top):.1f}"


def _height(value: float | None, top: float) -> float | None:
    return None if value is None else 100 * (1 - value / top)


def _line(x: Sequence[float], y: Numbers) -> str:
    """A line that breaks where a value is missing."""
    parts, pen = [], "M"
    for a, b in zip(x, y, strict=True):
        parts.append("" if b is None else f"{pen}{a:.1f} {b:.1f}")
        pen = "M" if b is None else "L"
    return "".join(parts)


def _points(x: Sequence[float], y: Numbers) -> str:
    """Strokes without a length: round caps make them dots that no stretching distorts."""
    return "".join(f"M{a:.1f} {b:.1f}h0" for a, b in zip(x, y, strict=True) if b is not None)


def _steps(x: Numbers, share: Numbers, axis: Axis) -> str:
    pairs = [
        (axis.at(a), 100 - 100 * b) for a, b in zip(x, share, strict=True) if a is not None and b is not None
    ]
    return _line([a for a, _ in pairs], [b for _, b in pairs])


def _band(curve: ReturnCurve, axis: Axis) -> str:
    upper = _steps(curve.x, curve.high, axis)
    lower = _steps(curve.x[::-1], curve.low[::-1], axis)
    return f"{upper}L{lower[1:]}Z" if upper and lower else ""
