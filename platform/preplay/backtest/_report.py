"""What a backtest says; JSON in and out, and in one sentence."""

import math
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, Field, PlainSerializer

from preplay.actions import AdapterShares
from preplay.backtest._support import Skill, Support

Verdict = Literal["estimate", "not identified"]
_ToJson = PlainSerializer(
    lambda v: v if math.isfinite(v) else None, return_type=float | None, when_used="json"
)
Number = Annotated[float, BeforeValidator(lambda v: math.nan if v is None else v), _ToJson]
"""A float; NaN, where nothing is known, is null in JSON."""
Error = Annotated[float, BeforeValidator(lambda v: math.inf if v is None else v), _ToJson]
"""A standard deviation or degrees of freedom; infinite, where nothing bounds it, is null in JSON."""


class Bounds(BaseModel):
    """An interval of a share, and the error (standard deviation, with its degrees of freedom) it stands for."""

    low: float
    high: float
    error: Error
    freedom: Error = math.inf

    @property
    def width(self) -> float:
        return self.high - self.low

    def contains(self, value: float) -> bool:
        """Whether the value lies inside, ends included."""
        return self.low - 1e-12 <= value <= self.high + 1e-12


class PolicyBacktest(BaseModel):
    """One left-out policy: what was predicted without its rewards, and what it logged."""

    policy: str
    logged: float | None
    """None: its rewards are not known, or not looked at."""
    predicted: Number
    bounds: Bounds
    candidate: str
    """Representation and model, chosen on the other policies."""
    fold_logged: list[float | None]
    fold_predicted: list[float | None]
    fold_bounds: list[Bounds]
    support: Support
    verdict: Verdict
    reason: str

    @property
    def error(self) -> float | None:
        """Absolute error of the pooled prediction."""
        return None if self.logged is None else abs(self.predicted - self.logged)

    def sentence(self) -> str:
        """The finding in one sentence."""
        if self.verdict != "estimate":
            return f"{self.policy}: the logs cannot tell. {self.reason}"
        low, high = 100 * self.bounds.low, 100 * self.bounds.high
        return f"{self.policy} would solve {100 * self.predicted:.0f} % of its sessions ({low:.0f} to {high:.0f})."


class EstimatorScore(BaseModel):
    """How one estimator did over all left-out policies (points are shares × 100)."""

    estimator: str
    pooled: Number
    worst: Number
    fold: Number
    spearman: Number
    spearman_low: float
    spearman_high: float
    regret: Number
    """Logged value of the best policy minus that of the one predicted best, in points."""
    seconds: float = 0.0
    """CPU seconds."""


class Collect(BaseModel):
    """Where labelled sessions would narrow the interval most."""

    what: str
    share: float
    """Of the turns of the policies that do this most."""
    policy: str
    support: int


class BacktestReport(BaseModel):
    """Everything a backtest found out."""

    policies: list[PolicyBacktest]
    scores: list[EstimatorScore]
    chosen: EstimatorScore | None
    """The nested choice: the figure to quote."""
    coverage: Number = Field(description="share of folds whose logged value lies in the interval")
    width: Number = Field(description="mean width of the fold intervals, in points")
    pooled_coverage: Number
    pooled_width: Number
    refused: int
    limits: dict[str, float]
    level: float
    """Of the intervals."""
    known: Literal["sessions", "actions"] = "sessions"
    """What was looked at of each left-out policy."""
    gamma: float = 1.0
    """Discount per turn of all values here; 1: they are shares of solved sessions."""
    collect: list[Collect] = []
    families: AdapterShares
    notes: list[str] = []
    """For the data card: tool families, leaks, what could not be done."""
    tried: int
    """Candidates the choice was made among."""
    seconds: float = 0.0

    def sentence(self) -> str:
        """The finding in one sentence."""
        if self.chosen is None:
            return self.notes[-1]
        refused = f" {self.refused} would be refused." if self.refused else ""
        how = "" if self.known == "sessions" else ", from their actions alone,"
        return (
            f"On your logs, preplay predicted {len(self.policies)} left-out policies{how} with "
            f"{self.chosen.pooled:.1f} points of error (worst {self.chosen.worst:.1f}); "
            f"its {self.level:.0%} intervals held {self.coverage:.0%} of the parts.{refused}"
        )

    def missing(self) -> dict[str, list[Skill]]:
        """Skills per policy that no other policy shows."""
        return {p.policy: p.support.missing for p in self.policies if p.support.missing}
