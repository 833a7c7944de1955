"""What can be set about rehearsal, and the schedules of it."""

from collections.abc import Sequence
from typing import Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, model_validator

Schedule = float | Sequence[tuple[int, float]]
"""A constant, or (real environment steps, value) pairs with straight lines between them."""


def at(schedule: Schedule, real_steps: int) -> float:
    """Value of a schedule after this many real steps."""
    if isinstance(schedule, int | float):
        return float(schedule)
    steps, values = zip(*schedule, strict=True)
    return float(np.interp(real_steps, steps, values))


class RehearsalSettings(BaseModel):
    """How real and imagined experience are mixed.

    Per training step with n real rows, ``n (1 - real_ratio) / real_ratio`` imagined rows are made in ``rounds`` equal
    parts, each from branches of ``horizon`` steps under the newest policy; ``more_rounds`` of the same size come on
    top as the task succeeds. The on-policy defaults are the ones that worked on MiniGrid with 512 real rows per step:
    4 to 16 rounds of 256 branches of 15 steps.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    real_ratio: Schedule = 1 / 31
    """Share of real rows among all rows trained on, not counting ``more_rounds``, in (0, 1]; 1: no rehearsal."""
    imagined_weight: float = Field(1.0, ge=0)
    """λ: factor on the imagined rows' advantages (PPO) or losses (DQN, SAC)."""
    horizon: Schedule = 15
    rounds: int = Field(4, ge=1)
    more_rounds: int = Field(12, ge=0)
    """Further rounds of the same size, times the share of the newest real episodes that succeeded: what the policy
    can do is drilled; as long as it hardly succeeds, much rehearsal keeps it from looking further in the world
    (DoorKey-6x6)."""
    imagined_epochs: int = Field(1, ge=1)
    imagined_minibatches: int = Field(4, ge=1)
    """Gradient steps per pass over the imagined rows of one round."""
    success_starts: float = Field(0.5, ge=0, le=1)
    """Share of branches that start on the way to a past success, times the real failure rate: where the task succeeds
    by itself, such starts would only make the critic think that all is well."""
    newest_starts: int = Field(1024, ge=1)
    """The other branches start among so many newest real rows, where the policy is *now*. From older states it does
    well in views that it meets in trouble today, and the critic cannot tell the two apart (LavaGapS5)."""
    warmup_steps: int = Field(512, ge=0)
    needs_success: bool = True
    """Rehearse only once a real episode has succeeded: before, there is nothing to rehearse for."""
    min_rows: int = Field(64, ge=1)
    """Imagined batches with fewer rows are skipped: their advantages are noise."""
    max_disagreement: float = Field(0.5, gt=0)
    """A branch is cut where at least this share of the ensemble disagrees with its mean prediction."""
    rehearse_every: int = Field(64, ge=1)
    """Real rows between two rounds of imagination (DQN, SAC)."""
    branches: int = Field(64, ge=1)
    """Branches per round of imagination (DQN, SAC); PPO derives its own from ``real_ratio``."""
    imagined_capacity: int = Field(2000, ge=1)
    """Imagined transitions that DQN and SAC keep: the policy moves on and so must they."""

    min_exact_match: float = Field(0.75, ge=0, le=1)
    """Gate: share of the newest real transitions predicted exactly *before* they are trained on."""
    max_gap: float = Field(0.1, ge=0)
    """Gate: imagined minus real success from the same states (vectors: reward, over the mean absolute one), a running
    mean."""
    max_error: float = Field(0.5, ge=0)
    """Gate for continuous observations: one-step error in units of the observations' one-step change."""
    gates: bool = True

    world_model: Literal["grid", "vector", "latent"] = "grid"
    """``grid`` for MiniGrid's one-hot view, ``vector`` for real numbers that tell the whole state, ``latent`` for
    images, and for vectors that do not."""
    memory: bool = True
    """Without it the grid model forgets what is out of sight and makes it up anew: policies learn to exploit that.
    The latent model then knows the newest observation only."""
    model_context: int = Field(16, ge=1)
    """Earlier steps that the latent model's belief is made from."""
    model_memory: Literal["gru", "transformer"] = "gru"
    """What the latent model's belief is: a state that every step changes, or a look back at the steps themselves."""
    model_latent: int = Field(0, ge=0)
    """Values of the categorical variable that stands for chance in the latent model, for tasks in which the same
    history may go on in more than one way; 0 averages chance away."""
    model_open_loop: int = Field(5, ge=1)
    """The latent model is trained to predict up to so many steps on from its own predictions."""
    max_steps: int | None = Field(None, ge=1)
    """The task's time limit, which MiniGrid's reward depends on; the ``MiniGrid`` environment here knows its own."""
    see_through_walls: bool | None = None
    """Whether MiniGrid's view shows what is behind walls (the empty rooms); also known by ``MiniGrid``."""
    model_updates: int = Field(40, ge=0)
    """Gradient steps of the world model per 512 real steps; 0 leaves it untrained (the placebo)."""
    model_batch_size: int = Field(256, ge=1)
    model_lr: float = Field(1e-3, gt=0)
    model_members: int = Field(5, ge=2)
    model_hidden: int = Field(64, ge=1)
    success_share: float = Field(0.25, ge=0, le=1)
    """Share of each of the world model's batches that ends an episode: success and failure are rare."""
    replay_capacity: int = Field(50_000, ge=1)

    bonus: float = Field(0.02, ge=0)
    """β of the first-visit bonus β / √N on the real stream: N episodes so far have visited this observation."""
    uniform_mix: float = Field(0.05, ge=0, lt=1)
    """The policy acts by (1 - ε) π + ε / A."""
    rare_actions: bool = True
    """In imagination, actions that only chance takes teach the policy at full strength where they turn out well
    (PPO). Without it, a policy that has settled on the wrong thing stays there (LavaGapS5)."""

    @model_validator(mode="after")
    def _ratio_is_a_share(self) -> "RehearsalSettings":
        values = (
            [self.real_ratio] if isinstance(self.real_ratio, float | int) else [v for _, v in self.real_ratio]
        )
        if not all(0 < v <= 1 for v in values):
            raise ValueError(f"real_ratio must lie in (0, 1], got {self.real_ratio}")
        return self

    def imagined_rows(self, real_rows: int, real_steps: int) -> int:
        """Imagined rows that belong to this many real rows."""
        ratio = at(self.real_ratio, real_steps)
        return round(real_rows * (1 - ratio) / ratio)
