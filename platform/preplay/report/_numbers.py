"""Numbers as text: as many digits as the spread of the values deserves, and a real minus sign."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from preplay.estimators import Interval
from preplay.report._schema import EvaluationReport

UNKNOWN = "–"


def plain(number: float | None, digits: int = 3) -> str:
    """A number with ``digits`` significant digits; whole numbers stay whole."""
    if number is None or not math.isfinite(number):
        return UNKNOWN
    if number == int(number):
        return f"{int(number):,}".replace(",", "\u202f").replace("-", "−")
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(number))))
    return fixed(number, min(decimals, 8))


def share(number: float | None) -> str:
    """A share as a percentage."""
    return UNKNOWN if number is None else f"{100 * number:.0f} %"


def fixed(number: float | None, decimals: int) -> str:
    """A number with a given number of decimals; zero has no sign."""
    if number is None or not math.isfinite(number):
        return UNKNOWN
    text = f"{number:.{decimals}f}"
    zero = float(text) == 0
    return text.removeprefix("-") if zero else text.replace("-", "−")


@dataclass(frozen=True)
class ValueFormat:
    """How the values of one report are written: all with the same number of decimals."""

    decimals: int

    def value(self, number: float | None) -> str:
        return fixed(number, self.decimals)

    def difference(self, number: float | None) -> str:
        """With its sign."""
        text = fixed(number, self.decimals)
        return f"+{text}" if number is not None and number > 0 and float(text) else text

    def interval(self, interval: Interval | None) -> str:
        """``0.1 to 0.4``, ``at least 0.1``, ``at most 0.4`` or ``unbounded``."""
        if interval is None:
            return UNKNOWN
        low, high = self.value(interval.low), self.value(interval.high)
        if math.isinf(interval.low):
            return "unbounded" if math.isinf(interval.high) else f"at most {high}"
        return f"at least {low}" if math.isinf(interval.high) else f"{low} to {high}"


def format_for(report: EvaluationReport) -> ValueFormat:
    """Three digits for the spread of the report's values: 0.55 of a range of 1, 55.1 of a range of 90."""
    values = [number for number in _shown(report) if number is not None and math.isfinite(number)]
    span = max(values) - min(values) if values else 0.0
    span = span or max(map(abs, values), default=1.0) or 1.0
    return ValueFormat(min(6, max(0, 2 - math.floor(math.log10(span)))))


def _shown(report: EvaluationReport) -> Iterable[float | None]:
    for policy in report.policies:
        yield policy.headline.value
        yield policy.truth.value if policy.truth else None
        yield from (policy.headline.interval.low, policy.headline.interval.high)
    yield from (behavior.mean_return for behavior in report.behavior)
