"""What a server answers. Fields that a newer server adds are kept out of the way."""

from typing import Any, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict

from preplay.report import EvaluationReport


class _Answer(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class ModelUsed(_Answer):
    """Which critic decided."""

    name: str
    version: str
    encoder: str


class Decision(_Answer):
    """``act``: execute ``action``. ``fallback``: ``action`` is the safe one. ``review``: ask a person."""

    id: str
    decision: Literal["act", "fallback", "review"]
    action: str | None
    index: int | None
    scores: list[float | None]
    confidence: float | None
    reasons: list[str]
    model: ModelUsed


class Progress(_Answer):
    """How far an evaluation is, in blocks of imagined sessions."""

    stage: str
    done: int
    total: int


class PartialEstimate(_Answer):
    """The world model's word on a policy so far, with the interval of its sampling alone."""

    policy: str
    value: float
    low: float
    high: float
    level: float
    sessions: int


class Evaluation(_Answer):
    """An evaluation; ``report`` is there once it has succeeded and was asked for by its id."""

    id: str
    status: Literal["queued", "running", "cancelling", "succeeded", "failed", "cancelled"]
    created: AwareDatetime
    started: AwareDatetime | None
    finished: AwareDatetime | None
    progress: Progress
    partial: list[PartialEstimate]
    error: str | None
    attempts: int
    spec: dict[str, Any]
    report: EvaluationReport | None = None

    @property
    def final(self) -> bool:
        """Whether nothing will change any more."""
        return self.status in ("succeeded", "failed", "cancelled")


class ArtifactInfo(_Answer):
    """A critic, world model or dataset that the server knows."""

    kind: str
    name: str
    version: str
    current: bool
    details: dict[str, Any]
