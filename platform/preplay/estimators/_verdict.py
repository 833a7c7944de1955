"""The verdict: whether the logs can answer the question at all."""

import math
from dataclasses import dataclass

from preplay.estimators._batch import SessionBatch
from preplay.estimators._results import Interval, VerdictKind

MIN_ESS = 30.0
"""Effective sessions below which an interval is only a bound: its tails are set by a handful of sessions."""


@dataclass(frozen=True)
class Verdict:
    """Whether the number may be used, why in one sentence, and what would help."""

    kind: VerdictKind
    reason: str
    fix: str | None = None


def decide(
    value: float, batch: SessionBatch, diagnostics: dict[str, float | None], interval: Interval
) -> Verdict:
    """Verdict from the value, its diagnostics and its interval; the first reason that applies is given."""
    more = "Collect sessions of the target policy, or of one closer to it."
    if not math.isfinite(value):
        reason = "The estimate is undefined: the target policy never takes the logged actions."
        if (diagnostics.get("log_max_weight") or 0) > 0:
            reason = "The importance weights are beyond any floating-point number."
        return Verdict(kind="not identified", reason=reason, fix=more)
    if (diagnostics.get("log_max_weight", 0.0)) is None:
        return Verdict(
            kind="not identified", reason="The target policy never takes the logged actions.", fix=more
        )
    if batch.n_sessions == 1:
        return Verdict(kind="bounds only", reason="One session tells nothing about its spread.", fix=more)
    ess = diagnostics.get("ess_min") or 0.0
    if ess < MIN_ESS or not math.isfinite(interval.width):
        reason = f"Only {ess:.1f} of {batch.n_sessions} sessions carry the weight."
        return Verdict(kind="bounds only", reason=reason, fix=more)
    return Verdict(kind="estimate", reason=f"{ess:.0f} effective sessions carry the estimate.")
