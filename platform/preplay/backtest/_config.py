"""How a backtest is run."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

Learner = Literal["logistic", "boosting", "knn"]
"""What may be fitted per turn."""


class BacktestConfig(BaseModel):
    """How a backtest is run.

    Args:
        folds: Parts of the environments; what is predicted in one is learned in the others.
        nested_folds: The same inside the nested loop that chooses and calibrates; fewer are quicker.
        rows: Training rows per model; more are thinned at random.
        level: Level of the intervals.
        horizon: Declared turn budget of the target; the logs' by default.
        learners: Models per turn that may be chosen, on every representation.
        known: What is known of a policy that is predicted: unlabelled ``sessions`` of its own, or only the
            ``actions`` it would take in logged states.
        gamma: Discount per turn of the value; 1: the share of solved sessions.
        seed: Of every random draw.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    folds: int = Field(default=5, ge=2)
    nested_folds: int = Field(default=2, ge=2)
    rows: int = Field(default=8000, ge=200)
    level: float = Field(default=0.9, gt=0, lt=1)
    horizon: int | None = Field(default=None, ge=1)
    learners: tuple[Learner, ...] = ("logistic", "boosting")
    known: Literal["sessions", "actions"] = "sessions"
    gamma: float = Field(default=1.0, gt=0, le=1)
    seed: int = 0
