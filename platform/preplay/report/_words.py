"""What one sees in each chart, in one or two sentences."""

import math
from collections.abc import Sequence

from preplay.estimators import Interval
from preplay.report._curves import Propensities, ReturnCurve, Weights
from preplay.report._numbers import ValueFormat, plain, share

Numbers = Sequence[float | None]

FEW = 30
"""Effective sessions below which a mean is said to rest on few."""
NAMED = 4
"""Logged policies named in a sentence."""


def weights(found: Weights) -> str:
    """How far the heaviest session stands out, and how many count nothing."""
    top = found.log10_edges[-1]
    assert top is not None
    said = f"The heaviest of {plain(found.sessions)} sessions counts {_times(top)}."
    if found.zero_weights:
        part = share(found.zero_weights / found.sessions)
        why = "the policy would never have acted so"
        if 0.0 in found.loggers.values():
            why += ", or who logged them leaves out much of what it does"
        said += f" {part} count nothing: {why}."
    return f"{said} {loggers(found)}".rstrip()


def loggers(found: Weights) -> str:
    """Whose sessions count most, or why all count the same; nothing where one policy wrote the logs."""
    if not found.loggers:
        return ""
    if found.starts_differ:
        return f"All logged policies count the same: sessions of {found.starts_differ} start in other states."
    ranked = sorted(found.loggers.items(), key=lambda pair: (-pair[1], pair[0]))
    if ranked[0][1] == ranked[-1][1]:
        return ""
    said = ", ".join(f"{name} {plain(factor, 2)}" for name, factor in ranked[:NAMED])
    rest = f", others at most {plain(ranked[NAMED][1], 2)}" if len(ranked) > NAMED else ""
    return f"By who logged it, a session's weight is multiplied by: {said}{rest}."


def effective(series: Numbers) -> str:
    """How fast the logs run out."""
    first, last = series[0], series[-1]
    few = last is None or not first or last < max(FEW, 0.1 * first)
    judged = "later turns rest on few sessions" if few else "every turn rests on many sessions"
    return f"From {plain(first, 2)} effective sessions at turn 1 to {plain(last, 2)} at turn {len(series)}: {judged}."


def clipping(found: Weights, interval: Interval, fmt: ValueFormat) -> str:
    """Whether the estimate hangs on its largest weights."""
    known = [p for p in found.clips if p.value is not None]
    unclipped = next((p for p in known if p.clip is None), None)
    if unclipped is None:
        return "Without clipping there is no value."
    farthest = max(known, key=lambda p: abs(_known(p.value) - _known(unclipped.value)))
    if farthest.value == unclipped.value:
        return "No weight is large enough to be cut: clipping changes nothing."
    inside = all(interval.contains(_known(p.value)) for p in known)
    moved = (
        f"Cutting weights above {plain(farthest.clip)} ({share(farthest.clipped_share)} of turns) would move "
    )
    moved += f"{fmt.value(unclipped.value)} to {fmt.value(farthest.value)}"
    if inside:
        return f"{moved}, inside the interval: the estimate does not hang on a few heavy sessions."
    return f"{moved}, outside the interval: heavy sessions matter."


def returns(curve: ReturnCurve, logged: ReturnCurve | None, fmt: ValueFormat) -> str:
    """Median and worst tenth, beside those of the logs."""
    said = f"Half of the sessions would return at most {fmt.value(quantile(curve, 0.5))}"
    said += f", a tenth at most {fmt.value(quantile(curve, 0.1))}"
    if logged and logged.x:
        half, tenth = fmt.value(quantile(logged, 0.5)), fmt.value(quantile(logged, 0.1))
        said += f" (logged sessions: {half} and {tenth})"
    return f"{said}."


def reliability(found: Propensities) -> str:
    """How much the state tells, and how honest the probabilities are."""
    gain = 1 - found.brier / found.base_brier if found.base_brier else 0.0
    said = (
        f"From the state, the logged agents' next action (one of {found.clusters} groups) is predicted with "
    )
    said += f"{share(max(gain, 0.0))} less squared error than without it; "
    return f"{said}stated confidence is off by {share(found.ece)} on average."


def quantile(curve: ReturnCurve, part: float) -> float | None:
    """The smallest point at which the distribution reaches ``part``."""
    pairs = zip(curve.x, curve.cdf, strict=True)
    return next((x for x, y in pairs if x is not None and y is not None and y >= part - 1e-9), None)


def _times(log10: float) -> str:
    if log10 < math.log10(1.05):
        return "no more than once"
    return f"{plain(10**log10, 2)} times" if log10 < 6 else f"10 to the {log10:.0f} times"


def _known(value: float | None) -> float:
    assert value is not None
    return value
