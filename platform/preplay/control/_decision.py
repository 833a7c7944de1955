"""What a controller decided, with everything needed to understand it later."""

import math
from dataclasses import dataclass
from typing import Literal

Outcome = Literal["chosen", "fallback", "review"]


@dataclass(frozen=True)
class Decision:
    """One decision.

    Args:
        id: Unique; outcomes are joined by it.
        outcome: ``chosen`` (execute ``action``), ``fallback`` (the safe action is in ``action``) or
            ``review`` (ask a human; ``action`` is None).
        action: What to execute.
        index: Place of the chosen candidate; None for fallback and review.
        scores: Score of each candidate; NaN where it was blocked or could not be scored.
        confidence: Of the best candidate, NaN without one.
        reasons: Why, in plain words, one per rule that had a say.
        evidence: What the harness knew about each candidate, where it said so: without it no critic that reads
            evidence can score, or learn from, this decision again.
    """

    id: str
    outcome: Outcome
    action: str | None
    index: int | None
    scores: tuple[float, ...]
    confidence: float
    reasons: tuple[str, ...]
    evidence: tuple[tuple[float, ...], ...] | None = None

    @property
    def best_score(self) -> float:
        """The highest finite score, NaN without one."""
        return max((s for s in self.scores if math.isfinite(s)), default=math.nan)
