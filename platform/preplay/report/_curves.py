"""What the plots of a result show: weights, clipping, returns, propensities, differences between policies."""

from pydantic import BaseModel, ConfigDict, Field

from preplay.estimators import Interval
from preplay.report._values import Number, Points


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ClippedValue(_Record):
    """A policy's estimate with importance weights cut at ``clip``."""

    clip: Number = None
    """Largest weight kept; None is no clipping."""
    value: Number = None
    clipped_share: float = Field(ge=0, le=1)
    """Share of the turns whose weight was cut."""


class Weights(_Record):
    """Importance weights of whole sessions, and what the estimate owes to the largest."""

    log10_edges: Points = []
    """Edges of the histogram, base-10 logarithms; one more than ``counts``."""
    counts: list[int] = []
    zero_weights: int = 0
    """Sessions that the policy would never have brought about."""
    clips: list[ClippedValue] = []
    clip_estimator: str = ""
    loggers: dict[str, float] = {}
    """What a session of each logging policy counts before its own weight; empty where there is only one."""
    starts_differ: str | None = None
    """The logging policy whose sessions start in other states than the rest, so that all count the same."""

    @property
    def sessions(self) -> int:
        return sum(self.counts) + self.zero_weights


class ReturnCurve(_Record):
    """Distribution of a session's return: probability that it is at most ``x``."""

    x: Points = []
    cdf: Points = []
    low: Points = []
    high: Points = []
    """A band that holds at all points at once; empty without one."""


class CalibrationBin(_Record):
    """Cases of similar predicted probability."""

    predicted: float
    observed: float
    count: int


class Propensities(_Record):
    """How well what the logged agents did next can be told from the state, on sessions not trained on."""

    clusters: int
    """Groups of similar actions that are told apart."""
    ece: float
    """Mean |confidence − accuracy| of the likeliest group."""
    brier: float
    """Mean squared error of the probabilities, 0 to 2."""
    base_brier: float
    """The same when the state is ignored."""
    reliability: list[CalibrationBin]


class Difference(_Record):
    """``better`` minus ``other``, estimated on the same sessions and resamples."""

    better: str
    other: str
    difference: float
    standard_error: float
    interval: Interval
    """For this pair alone."""
    simultaneous: Interval
    """Holds for all pairs of the report at once."""
    p_value: float
    adjusted_p_value: float
    """Holm's, over all pairs of the report."""
