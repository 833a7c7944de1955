"""Numbers as text: as many digits as the spread of the values deserves, and a real minus sign."""

import math
from dataclasses import dataclass

from preplay.estimators import Interval
from preplay.report._schema import EvaluationReport, PolicyResult

UNKNOWN = "–"


def plain(number: float | None, digits: int = 3) -> str:
    """A number with ``digits`` significant digits; whole numbers stay whole."""
    if number is None or not math.isfinite(number):
        return UNKNOWN
    if number == int(number):
        return f"{int(number):,}".replace(",", "\u202f").replace("-", "−")
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(number))))
    return fixed(number, min(decimals, 8))


def brief(number: float) -> str:
    """A setting or a count as it was given, to four significant digits."""
    return plain(number) if number == int(number) else f"{number:.4g}".replace("-", "−")


def share(number: float | None) -> str:
    """A share as a percentage."""
    return UNKNOWN if number is None else f"{100 * number:.0f}\u00a0%"


def fixed(number: float | None, decimals: int) -> str:
    """A number with a given number of decimals; zero has no sign."""
    if number is None or not math.isfinite(number):
        return UNKNOWN
    text = f"{number:.{decimals}f}"
    zero = float(text) == 0
    return text.removeprefix("-") if zero else text.replace("-", "−")


def p_value(number: float) -> str:
    """Three decimals; very small ones as ``< 0.001``."""
    return "< 0.001" if number < 0.001 else fixed(number, 3)


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
    """Steps of about a hundredth of the spread of the values: 0.55 for a spread of 0.8, 55 for one of 80."""
    values = core_values(report)
    span = max(values) - min(values) if values else 0.0
    span = span or max(map(abs, values), default=1.0) or 1.0
    return ValueFormat(min(6, max(0, 2 - math.floor(math.log10(span / 0.3)))))


def core_values(report: EvaluationReport) -> list[float]:
    """The finite numbers worth a scale: all but the edges of intervals that are only bounds."""
    values: list[float | None] = [report.logged_mean]
    for policy in report.policies:
        values += [policy.truth.value if policy.truth else None]
        if policy.headline.verdict == "estimate":
            values += [policy.headline.value, *edges(policy)]
    return [value for value in values if value is not None and math.isfinite(value)]


def edges(policy: PolicyResult) -> list[float]:
    """The finite ends of the headline's interval."""
    interval = policy.headline.interval
    return [edge for edge in (interval.low, interval.high) if math.isfinite(edge)]
