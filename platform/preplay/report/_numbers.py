"""Numbers as text: as many digits as the spread of the values deserves, and a real minus sign."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from preplay.report._schema import EvaluationReport, Interval

UNKNOWN = "–"


def plain(number: float | None, digits: int = 3) -> str:
    """A number with ``digits`` significant digits; whole numbers stay whole."""
    if number is None:
        return UNKNOWN
    if number == int(number):
        return f"{int(number):,}".replace(",", "\u202f").replace("-", "−")
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(number))))
    return _fixed(number, min(decimals, 8))


def share(number: float | None) -> str:
    """A share as a percentage."""
    return UNKNOWN if number is None else f"{100 * number:.0f} %"


def _fixed(number: float, decimals: int) -> str:
    text = f"{number:.{decimals}f}"
    zero = float(text) == 0
    return text.removeprefix("-") if zero else text.replace("-", "−")


@dataclass(frozen=True)
class ValueFormat:
    """How the values of one report are written: all with the same number of decimals."""

    decimals: int

    def value(self, number: float | None) -> str:
        return UNKNOWN if number is None else _fixed(number, self.decimals)

    def difference(self, number: float | None) -> str:
        """With its sign."""
        if number is None:
            return UNKNOWN
        text = _fixed(number, self.decimals)
        return text if text.startswith("−") or float(text) == 0 else f"+{text}"

    def interval(self, interval: Interval | None) -> str:
        """``0.1 to 0.4``, ``at least 0.1``, ``at most 0.4`` or ``unbounded``."""
        if interval is None:
            return UNKNOWN
        low, high = self.value(interval.low), self.value(interval.high)
        if interval.low is None:
            return "unbounded" if interval.high is None else f"at most {high}"
        return f"at least {low}" if interval.high is None else f"{low} to {high}"


def format_for(report: EvaluationReport) -> ValueFormat:
    """Three digits for the spread of the report's values: 0.55 of a range of 1, 55.1 of a range of 90."""
    values = [number for number in _shown(report) if number is not None]
    span = max(values) - min(values) if values else 0.0
    span = span or max(map(abs, values), default=1.0) or 1.0
    return ValueFormat(min(6, max(0, 2 - math.floor(math.log10(span)))))


def _shown(report: EvaluationReport) -> Iterable[float | None]:
    for policy in report.policies:
        yield policy.headline.value
        yield policy.truth.value if policy.truth else None
        if policy.headline.interval:
            yield from (policy.headline.interval.low, policy.headline.interval.high)
    yield from (behavior.mean_return for behavior in report.behavior)
