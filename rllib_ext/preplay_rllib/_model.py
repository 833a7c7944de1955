"""What every world model here offers to the algorithms, and the parts that they share."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
import torch
from ray.rllib.core.rl_module.apis import SelfSupervisedLossAPI
from ray.rllib.core.rl_module.torch.torch_rl_module import TorchRLModule
from ray.rllib.env.single_agent_episode import SingleAgentEpisode
from torch import Tensor, nn

from preplay_rllib._replay import Columns

WORLD_MODEL = "world_model"
"""The ModuleID of the world model beside the policy."""


@dataclass(frozen=True)
class Imagined:
    """One imagined step of B branches.

    Args:
        state: The state after the step (the model's own type).
        observation: float32 [B, D] what the policy will see.
        reward: float32 [B]
        terminated: bool [B] ended by itself; ``success`` bool [B] in the way that the task wants.
        truncated: bool [B] the task's time limit.
        worth: float32 [B] what the gap between imagined and real is about: success, or else the reward.
        disagreement: float32 [B] share of members (or their spread) against the ensemble's mean.
    """

    state: Any
    observation: Tensor
    reward: Tensor
    terminated: Tensor
    success: Tensor
    truncated: Tensor
    worth: Tensor
    disagreement: Tensor


class Tracker(Protocol):
    """Follows the real stream, chunk by chunk, and turns it into the world model's rows.

    Rows of one call are in the order of ``episodes`` and of time. Every tracker adds ``episode`` (a running number),
    ``terminated``, ``success`` and ``worth`` (see ``Imagined``).
    """

    def track(self, episodes: Sequence[SingleAgentEpisode]) -> Columns:
        """Rows of the next chunks."""
        ...

    def gap_unit(self, rows: Columns, horizon: int) -> float:
        """The worth of a stretch of ``horizon`` steps that makes a gap of 1, from replayed rows."""
        ...

    def get_state(self) -> dict[str, Any]:
        """What a checkpoint needs; unfinished episodes are not part of it."""
        ...

    def set_state(self, state: dict[str, Any]) -> None:
        """Go on from a checkpoint with new episodes."""
        ...


class EnsembleModule(TorchRLModule, SelfSupervisedLossAPI):
    """A learner-only RLModule: an ensemble that predicts one step and says how sure it is."""

    def fit_scales(self, rows: Columns) -> None:
        """Fit normalisers on real training rows, before gradient steps."""

    @abstractmethod
    def states(self, rows: Columns, device: torch.device) -> Any:
        """The states that replayed rows start from."""

    @abstractmethod
    def observe(self, state: Any) -> Tensor:
        """The policy's observation float32 [B, D] in these states."""

    @abstractmethod
    def step(self, state: Any, action: Tensor, generator: torch.Generator | None) -> Imagined:
        """One step; without a generator it is the ensemble's most likely outcome."""

    @abstractmethod
    def error(self, rows: Columns, device: torch.device) -> dict[str, float]:
        """How well real rows are predicted."""

    @abstractmethod
    def ensemble_loss(self, batch: dict[str, Tensor]) -> Tensor:
        """The loss of a batch of real rows; each member weighs rows by its own bootstrap."""

    def compute_self_supervised_loss(
        self, *, learner: Any, module_id: Any, config: Any, batch: Any, fwd_out: Any, **kwargs: Any
    ) -> Any:
        loss = self.ensemble_loss(batch)
        learner.metrics.log_value((module_id, "model_loss"), loss, window=1)
        return loss

    def _forward(self, batch: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        """The loss does the forward pass: what is predicted depends on what the rows show."""
        return {}


class EnsembleMLP(nn.Module):
    """E independent networks of the same shape as batched matrix products, float32 [B, in] -> [E, B, out]."""

    def __init__(self, members: int, sizes: Sequence[int]):
        super().__init__()
        pairs = list(pairwise(sizes))
        self.weights = nn.ParameterList(
            nn.Parameter(torch.randn(members, i, o) / np.sqrt(i)) for i, o in pairs
        )
        self.biases = nn.ParameterList(nn.Parameter(torch.zeros(members, 1, o)) for _, o in pairs)

    def forward(self, x: Tensor) -> Tensor:
        hidden = x.unsqueeze(0)
        for layer, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            hidden = torch.relu(hidden) if layer else hidden
            hidden = hidden @ weight + bias
        return hidden


def draw_members(members: int, rows: int, generator: torch.Generator | None, device: torch.device) -> Tensor:
    """int64 [B]: the member that each row follows in this step."""
    return torch.randint(members, (rows,), generator=generator, device=device)
