"""The result of an evaluation, as written to ``result.json``: versioned, with a JSON schema.

Values and rewards are in the unit of the logged rewards; a value is the expected discounted return of a
session. Distances are in units of the typical nearest-neighbour distance between logged latents.
"""

from typing import Any, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, field_validator

from preplay.backtest import BacktestReport, PolicyBacktest
from preplay.estimators import Estimate, Interval
from preplay.report._curves import CalibrationBin, Difference, Propensities, ReturnCurve, Weights
from preplay.report._values import Mapping, Number, Series

SCHEMA_VERSION = "4"
"""Version 2 added weights, return curves, propensities, differences and the fit of Q, 3 backtests,
4 what the sessions of each logging policy count; all are read."""


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Truth(_Record):
    """The value measured by running the policy, where that is possible."""

    value: float
    standard_error: Number = None


class DriftCurve(_Record):
    """How far sessions are from the logs, turn by turn (means over the sessions still running)."""

    snap_distance: Series = []
    """Generated next observation to the nearest logged one."""
    support_distance: Series = []
    """(state, action) to the nearest logged one."""


class Support(_Record):
    """How well the logs cover what a policy does."""

    share_beyond: float = Field(ge=0, le=1)
    """Share of its imagined turns whose ``support_distance`` exceeds ``radius``."""
    radius: float
    ess_per_step: Series = []
    """Effective sample size of the importance weights at each turn; empty without propensities."""


class Turn(_Record):
    """One turn to read. The last three fields are None for real turns."""

    observation: str
    action: str
    reward: Number = None
    terminated_prob: Number = None
    """Probability that the session ended by itself with this turn."""
    snap_distance: Number = None
    support_distance: Number = None


class SessionPair(_Record):
    """An imagined session and the logged one nearest to it."""

    imagined: list[Turn]
    imagined_return: Number = None
    real: list[Turn] = []
    real_return: Number = None
    real_session_id: str = ""
    real_policy: str = ""


class PolicyResult(_Record):
    """Everything said about one target policy. A headline that is not identified loses its numbers here."""

    name: str
    headline: Estimate
    estimates: list[Estimate] = []
    """All estimators side by side, the headline's among them; the same ids in each policy."""
    truth: Truth | None = None
    drift: DriftCurve | None = None
    support: Support | None = None
    weights: Weights | None = None
    """None where the logs or the policy have no propensities."""
    returns: ReturnCurve | None = None
    value_fit: Number = None
    """Share of the variance of imagined returns that the Q function behind doubly robust estimates explains."""
    sessions: list[SessionPair] = []
    """A few to read; ten thousand would make the page heavy."""
    structured: PolicyBacktest | None = None
    """What its tool calls say, by the method of one of the report's backtests; None for plain text."""

    @field_validator("headline")
    @classmethod
    def _withhold(cls, headline: Estimate) -> Estimate:
        if headline.verdict != "not identified":
            return headline
        unknown = Interval.unbounded(headline.interval.level, headline.interval.method)
        numbers = {"value": None, "raw_value": None, "standard_error": None, "epistemic_error": None}
        return headline.model_copy(update={**numbers, "interval": unknown})


class BehaviorPolicy(_Record):
    """A logged policy, and the on-policy check: what the model says about it from the logs of all."""

    name: str
    sessions: int
    mean_return: float
    interval: Interval | None = None
    predicted: Number = None
    predicted_error: Number = None
    """Standard error of ``predicted``."""


class ModelQuality(_Record):
    """One-step and k-step quality of the world model on held-out sessions."""

    energy_score: Number = None
    cosine: Number = None
    """Cosine of generated and true next latent."""
    variance_ratio: Number = None
    """Variance of generated over that of true latents."""
    condition_effect: Number = None
    """Unconditional minus conditional energy score; near 0 the model ignores its condition."""
    reward_rmse: Number = None
    termination: list[CalibrationBin] = []
    k_step_drift: Series = []
    """Energy score after 1, 2, … imagined steps."""
    other: Mapping = {}


class Ranking(_Record):
    """How well one estimator (or ``headline``) orders the policies, measured against the truth."""

    estimator: str
    policies: int
    spearman: Number = None
    """None when all estimates are equal."""
    mae_share: Number = None
    """Mean absolute error over the range of the true values."""
    regret_at_1: Number = None
    """True value of the best policy minus that of the policy ranked first, over the same range."""


class EvaluationReport(_Record):
    """``result.json``."""

    schema_version: Literal["1", "2", "3", "4"] = SCHEMA_VERSION
    title: str
    dataset: str
    created: AwareDatetime
    seed: int
    gamma: float = Field(ge=0, le=1)
    horizon: int = Field(gt=0)
    reward_range: tuple[float, float] | None = None
    """Lowest and highest reward of a turn."""
    policies: list[PolicyResult]
    behavior: list[BehaviorPolicy] = []
    differences: list[Difference] = []
    """Between every two policies whose headline is identified; a bound where one of the two is only bounded."""
    logged_returns: ReturnCurve | None = None
    propensities: Propensities | None = None
    logged_drift: DriftCurve | None = None
    """The same distances for held-out logged sessions: the level to compare with."""
    model: ModelQuality | None = None
    ranking: list[Ranking] = []
    backtests: list[BacktestReport] = []
    """Logged policies left out and predicted; one for each kind of knowledge about target policies."""
    data_card: Mapping = {}
    configuration: Mapping = {}
    versions: dict[str, str] = {}
    commands: list[str] = []
    """What to type to get this report again."""

    @property
    def logged_mean(self) -> float | None:
        """Mean return of all logged sessions."""
        total = sum(policy.sessions for policy in self.behavior)
        return sum(p.mean_return * p.sessions for p in self.behavior) / total if total else None


def json_schema() -> dict[str, Any]:
    """The JSON schema of ``result.json``."""
    schema = EvaluationReport.model_json_schema(mode="serialization")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema"} | schema
