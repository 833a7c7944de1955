"""Evaluations as the store and the API speak of them."""

import datetime as dt
import secrets
import time
from typing import Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

Status = Literal["queued", "running", "cancelling", "succeeded", "failed", "cancelled"]
FINAL: tuple[Status, ...] = ("succeeded", "failed", "cancelled")
_NAME = r"^[A-Za-z0-9][A-Za-z0-9._/-]*$"


def new_id(prefix: str) -> str:
    """A new identifier that sorts by time and cannot be guessed: ``ev_018c...``."""
    return f"{prefix}_{int(time.time() * 1000):011x}{secrets.token_hex(8)}"


def moment(seconds: float | None) -> dt.datetime | None:
    """Seconds since 1970 as a UTC time."""
    return None if seconds is None else dt.datetime.fromtimestamp(seconds, dt.UTC)


class Record(BaseModel):
    """Base of everything stored."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class EvaluationSpec(Record):
    """What to evaluate; every name is looked up among what the server has registered."""

    policies: tuple[str, ...] = Field(
        min_length=1,
        max_length=16,
        description="Policies by name: `env:NAME` (brought by the environment), `cloned:NAME` (a clone in the models"
        " folder), `endpoint:NAME` or `python:NAME` (registered in the server's configuration).",
        examples=[["env:expert", "env:random"]],
    )
    dataset: str = Field(max_length=128, pattern=_NAME, description="An embedded dataset of `/v1/datasets`.")
    models: str = Field(max_length=128, pattern=_NAME, description="World models of `/v1/models`.")
    environment: str | None = Field(
        default=None, max_length=64, pattern=_NAME, description="Known environment of `env:` policies."
    )
    estimators: tuple[str, ...] | None = Field(
        default=None, max_length=32, description="Estimators to report; all that the logs allow by default."
    )
    without: tuple[str, ...] = Field(
        default=(), max_length=32, description="Logged policies whose sessions are left out."
    )
    preset: Literal["default", "debug"] = "default"
    seed: int = Field(default=0, ge=0, le=2**31 - 1, description="Same seed, same result.")


class Progress(Record):
    """How far an evaluation is."""

    stage: str = "queued"
    done: int = 0
    total: int = 0
    """Blocks of imagined sessions; 0 before that is known."""


class PartialEstimate(Record):
    """The world model's word on a policy so far: the mean of the imagined returns that are there, with its interval.

    It covers the sampling of sessions alone and is no verdict; the result carries that.
    """

    policy: str
    value: float
    low: float
    high: float
    level: float
    sessions: int
    """Imagined sessions behind it."""


class EvaluationRecord(Record):
    """An evaluation; its report is read apart, as it may be large."""

    id: str
    status: Status
    created: AwareDatetime
    started: AwareDatetime | None = None
    finished: AwareDatetime | None = None
    token: str = Field(description="Name of the token that asked for it.")
    spec: EvaluationSpec
    progress: Progress
    partial: tuple[PartialEstimate, ...] = ()
    error: str | None = None
    attempts: int = Field(default=0, description="How often it was started; more than once after a kill.")
    versions: dict[str, str] = Field(
        default_factory=dict,
        description="Content hashes of what it was accepted with; what is published later does not change it.",
        examples=[{"dataset": "5f0c...", "world_models": "91ab...", "cloned:team/clone": "77de..."}],
    )
    revision: int = Field(default=0, description="Rises with every change.")
