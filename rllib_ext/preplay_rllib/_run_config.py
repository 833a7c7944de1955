"""What a rehearsal run is made of, and what it gave."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from preplay_rllib._curve import Point


class RehearsalRunConfig(BaseModel):
    """One training run with rehearsal.

    ``rehearsal`` takes fields of ``RehearsalSettings``, ``training`` arguments of the algorithm's ``.training(...)``.
    """

    model_config = ConfigDict(extra="forbid")

    task: str = "MiniGrid-DoorKey-5x5-v0"
    """A Gymnasium id: MiniGrid tasks get the grid model, all others the model of vectors, or with ``frames`` the
    latent one."""
    frames: int = Field(1, ge=1)
    """The agent sees so many newest observations at once: for tasks that one observation does not tell."""
    algorithm: Literal["ppo", "dqn", "sac"] = "ppo"
    real_steps: int = Field(16_000, ge=1)
    """Real environment steps to train for."""
    seed: int = 0
    checkpoint_every: int = Field(10, ge=1)
    """Training steps between checkpoints. Episodes begin anew there, in resumed and uninterrupted runs alike."""
    env_runners: int = Field(0, ge=0)
    """Remote processes that collect real experience; 0 collects in the training process."""
    learners: int = Field(0, ge=0)
    """Remote processes that train; 0 trains in the driver."""
    rehearsal: dict[str, Any] = {}
    training: dict[str, Any] = {}

    @property
    def grid(self) -> bool:
        """Whether this is a MiniGrid task."""
        return self.task.startswith("MiniGrid-")


DEBUG = {"task": "MiniGrid-Empty-5x5-v0", "real_steps": 2_500, "checkpoint_every": 2}
"""Seconds instead of minutes."""


@dataclass(frozen=True)
class RehearsalRun:
    """What a run gave: its folder and its curve, and how many real steps it took to 0.9 of the optimal return."""

    folder: Path
    points: list[Point]
    reached: int | None
