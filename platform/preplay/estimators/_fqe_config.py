"""How fitted Q evaluation is run."""

from pydantic import BaseModel, ConfigDict, Field


class FQEConfig(BaseModel):
    """Settings of fitted Q evaluation; the defaults take a few seconds for 7,000 turns on one core."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    members: int = Field(default=4, ge=2)
    hidden: int = 64
    iterations: int | None = Field(
        default=None, ge=1, description="None: the longest session plus 3, at most 60"
    )
    steps: int = Field(default=120, ge=1, description="gradient steps per iteration")
    batch_size: int = 256
    learning_rate: float = 2e-3
    weight_decay: float = 1e-4
    held_out: float = Field(
        default=0.1, ge=0, lt=1, description="share of sessions kept for the Bellman residual"
    )
    use_turn: bool = Field(default=True, description="position in the session is part of the state")
