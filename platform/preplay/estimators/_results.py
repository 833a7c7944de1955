"""What an evaluation says: value, interval, diagnostics and a verdict. JSON in and out."""

import math
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer

VerdictKind = Literal["estimate", "bounds only", "not identified"]


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


Low = Annotated[
    float,
    BeforeValidator(lambda v: -math.inf if v is None else v),
    PlainSerializer(_finite, return_type=float | None, when_used="json"),
]
"""A lower end; null in JSON means unbounded."""
High = Annotated[
    float,
    BeforeValidator(lambda v: math.inf if v is None else v),
    PlainSerializer(_finite, return_type=float | None, when_used="json"),
]
"""An upper end; null in JSON means unbounded."""


class Interval(BaseModel):
    """A confidence interval; an end that nothing bounds is infinite (null in JSON)."""

    model_config = ConfigDict(frozen=True)
    low: Low
    high: High
    level: float = Field(gt=0, lt=1)
    method: str

    @property
    def width(self) -> float:
        return self.high - self.low

    def contains(self, value: float) -> bool:
        """Whether ``value`` lies inside, ends included."""
        return self.low <= value <= self.high

    @classmethod
    def unbounded(cls, level: float, method: str) -> "Interval":
        """What one session, or an undefined estimate, tells: nothing."""
        return cls(low=-math.inf, high=math.inf, level=level, method=method)


class Estimate(BaseModel):
    """The value of one policy by one estimator.

    ``value`` is withheld (None) when the verdict is ``not identified``; ``raw_value`` keeps what the formula
    gave, where it gave a number, for diagnosis only. ``reason`` says in one sentence why the verdict, ``fix``
    what would help.
    """

    model_config = ConfigDict(frozen=True)
    policy: str
    estimator: str
    value: float | None
    raw_value: float | None = None
    standard_error: float | None
    epistemic_error: float | None = None
    interval: Interval
    n_sessions: int
    n_turns: int
    diagnostics: dict[str, float | None] = {}
    verdict: VerdictKind
    reason: str
    fix: str | None = None
