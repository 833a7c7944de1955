"""What is rolled out, and when an imagined session may stop early."""

from pydantic import BaseModel, ConfigDict, Field, model_validator


class RolloutConfig(BaseModel):
    """Imagined sessions: ``rollouts`` from every initial state under every ensemble member.

    The return of one is ``sum_t gamma^t * survival_t * reward_t`` with t = 0 for its first turn (undiscounted) and
    ``survival_t = prod_{s<t} (1 - terminated_prob_s)``: sessions are weighted instead of ended by a coin flip.

    Args:
        rollouts: N, imagined sessions per initial state and ensemble member.
        horizon: Turns per imagined session at most; by default until the model's horizon of a session.
        gamma: Discount per turn.
        block_size: Imagined sessions per batch; changing it changes the random draws.
        seed: All noise and all policy draws come from streams of (seed, block, turn): equal for every policy.
        survival_floor: A session stops once it has ended by itself with at least 1 minus this probability.
        return_tolerance: A session also stops once the rest of it cannot change its return by more than this ...
        reward_bound: ... as no turn's reward exceeds this in absolute value. Both or neither.
        dead_ends: Observations after which no session goes on: reaching one ends the imagined session.
    """

    model_config = ConfigDict(frozen=True)

    rollouts: int = Field(default=16, ge=1)
    horizon: int | None = Field(default=None, ge=1)
    gamma: float = Field(default=0.97, gt=0, le=1)
    block_size: int = Field(default=2500, ge=1)
    seed: int = 0
    survival_floor: float = Field(default=1e-3, ge=0, lt=1)
    return_tolerance: float = Field(default=0.0, ge=0)
    reward_bound: float | None = Field(default=None, gt=0)
    dead_ends: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _tolerance_needs_a_bound(self) -> "RolloutConfig":
        if (self.return_tolerance > 0) != (self.reward_bound is not None):
            raise ValueError("return_tolerance and reward_bound are given together or not at all")
        return self
