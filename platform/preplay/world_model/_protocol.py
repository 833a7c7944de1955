"""The two protocols of a world model: latent dynamics, and the text-to-text model built around them.

Shapes: B rows, D embedding size, W window (turns), F features per turn, L latent size, Z noise size.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor


class Dynamics(Protocol):
    """Draws the latent of the next observation given the condition (the last W turns, newest action included).

    All randomness enters through ``noise``: the same noise gives the same draw whatever else is in the batch,
    which makes rollouts independent of sharding and lets policies be compared under common random numbers.
    """

    @property
    def noise_dim(self) -> int:
        """Z: normal numbers per row and step."""
        ...

    def step(self, condition: Tensor, noise: Tensor) -> Tensor:
        """Next latent float32 [B, L] from condition float32 [B, W, F] and normal noise float32 [B, Z]."""
        ...


@dataclass(frozen=True)
class WorldState:
    """Where B imagined sessions stand; rows are aligned. What ``window`` holds is the model's own business.

    Args:
        window: float32 [B, W, F] features of the last W turns, newest last; zeros before the start.
        turn: int64 [B] position in the session, from 0.
        context: float32 [B, K] features that stay constant in a session (its task).
    """

    window: Tensor
    turn: Tensor
    context: Tensor

    def select(self, rows: Tensor) -> "WorldState":
        """The given rows (indices or mask)."""
        return WorldState(self.window[rows], self.turn[rows], self.context[rows])


@dataclass(frozen=True)
class Transition:
    """One imagined turn of B sessions.

    Args:
        text_id: int64 [B] index into ``WorldModel.texts`` of the next observation.
        reward: float64 [B] expected reward of the turn.
        terminated_prob: float64 [B] probability that the session ends by itself with this turn.
        snap_distance: float32 [B] distance of the generated latent from the logged one it was decoded to,
            in units of the typical nearest-neighbour distance between logged latents (1 = typical).
        support_distance: float32 [B] distance of (state, action) from the nearest logged one, same kind of unit.
        state: The state after the turn.
    """

    text_id: Tensor
    reward: Tensor
    terminated_prob: Tensor
    snap_distance: Tensor
    support_distance: Tensor
    state: WorldState


class WorldModel(Protocol):
    """A simulator of the agent's world learned from logs: embeddings of actions in, observations out."""

    @property
    def texts(self) -> Sequence[str]:
        """The logged observations that imagined ones are decoded to."""
        ...

    @property
    def horizon(self) -> int:
        """Turns after which a session is truncated."""
        ...

    @property
    def noise_dim(self) -> int:
        """Z: normal numbers per session and turn."""
        ...

    def start(
        self,
        observation: Tensor,
        *,
        task: Tensor | None = None,
        history: Tensor | None = None,
        turn: Tensor | None = None,
    ) -> WorldState:
        """State of B sessions whose newest observation has these embeddings, float32 [B, D].

        ``task`` float32 [B, D] (zeros where a session has none); ``history`` float32 [B, T, 2, D] earlier
        (observation, action) embeddings, oldest first, padded with zero turns at the front; ``turn`` int64 [B].
        """
        ...

    def step(self, state: WorldState, action: Tensor, noise: Tensor) -> Transition:
        """One turn: action embeddings float32 [B, D], standard normal noise float32 [B, noise_dim].

        A model of tool calls also takes their features; see :meth:`preplay.world_model.LatentWorldModel.step`.
        """
        ...


def draw_noise(rows: int, dim: int, generator: torch.Generator) -> Tensor:
    """Standard normal noise float32 [rows, dim], drawn on the CPU so that every device sees the same."""
    return torch.randn(rows, dim, generator=generator)
