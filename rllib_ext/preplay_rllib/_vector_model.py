"""World model of observations that are real numbers: an ensemble of the change per step, reward and termination."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from ray.rllib.env.single_agent_episode import SingleAgentEpisode
from torch import Tensor
from torch.nn import functional as F

from preplay_rllib._model import EnsembleMLP, EnsembleModule, Imagined, draw_members
from preplay_rllib._replay import Columns

_CONSTANT = 1e-3


@dataclass(frozen=True)
class VectorState:
    """float32 [B, D] observations: the world model of a fully observed task needs nothing else."""

    observation: Tensor


class VectorTracker:
    """Transitions as they are."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._episodes = 0

    def track(self, episodes: Sequence[SingleAgentEpisode]) -> Columns:
        parts = [self._track_one(episode) for episode in episodes if len(episode)]
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}

    def _track_one(self, episode: SingleAgentEpisode) -> Columns:
        number = self._numbers.pop(episode.id_, None)
        if number is None:
            number, self._episodes = self._episodes, self._episodes + 1
        if not episode.is_done:
            self._numbers[episode.id_] = number
        observations = np.asarray(episode.get_observations(), np.float32)
        count = len(episode)
        return {
            "observation": observations[:-1],
            "next": observations[1:],
            "action": np.asarray(episode.get_actions()),
            "reward": np.asarray(episode.get_rewards(), np.float32),
            "terminated": (np.arange(count) == count - 1) & episode.is_terminated,
            "success": np.zeros(count, bool),
            "worth": np.asarray(episode.get_rewards(), np.float32),
            "episode": np.full(count, number, np.int64),
        }

    def gap_unit(self, rows: Columns, horizon: int) -> float:
        """What is earned or paid in so many steps of the replay."""
        return max(horizon * float(np.abs(rows["reward"]).mean()), _CONSTANT)

    def get_state(self) -> dict[str, Any]:
        return {"episodes": self._episodes}

    def set_state(self, state: dict[str, Any]) -> None:
        self._episodes, self._numbers = state["episodes"], {}


class VectorModule(EnsembleModule):
    """The ensemble. ``model_config``: members, hidden. Scales are fitted on real training rows and saved with it."""

    def setup(self) -> None:
        config = self.model_config
        self.members, self.size = config["members"], int(np.prod(self.observation_space.shape))
        self.discrete = isinstance(self.action_space, gym.spaces.Discrete)
        self.actions = int(self.action_space.n if self.discrete else np.prod(self.action_space.shape))
        self.net = EnsembleMLP(
            self.members, [self.size + self.actions, config["hidden"], config["hidden"], self.size + 2]
        )
        for name, size in (("centre", self.size), ("scale", self.size), ("change", self.size), ("worth", 1)):
            self.register_buffer(name, torch.zeros(size) if name == "centre" else torch.ones(size))

    @torch.no_grad()
    def fit_scales(self, rows: Columns) -> None:
        """Centre and scales of observations, their changes and rewards."""
        observation = torch.as_tensor(rows["observation"])
        self.centre.copy_(observation.mean(0))
        for name, values in (
            ("scale", observation),
            ("change", torch.as_tensor(rows["next"]) - observation),
            ("worth", torch.as_tensor(rows["reward"])[:, None]),
        ):
            spread = values.std(0)  # what never varies is predicted as it is
            getattr(self, name).copy_(torch.where(spread < _CONSTANT, 1.0, spread))

    def states(self, rows: Columns, device: torch.device) -> VectorState:
        return VectorState(torch.as_tensor(rows["observation"], device=device))

    def observe(self, state: VectorState) -> Tensor:
        return state.observation

    def step(self, state: VectorState, action: Tensor, generator: torch.Generator | None) -> Imagined:
        out = self._predict(state.observation, action)
        if generator is None:
            chosen = out.mean(0)
        else:
            member = draw_members(self.members, len(action), generator, out.device)
            chosen = out[member, torch.arange(len(action), device=out.device)]
        after = state.observation + chosen[:, : self.size] * self.change
        reward = chosen[:, -2] * self.worth
        never = torch.zeros(len(action), dtype=torch.bool, device=out.device)
        return Imagined(
            state=VectorState(after),
            observation=after,
            reward=reward,
            terminated=chosen[:, -1] > 0,
            success=never,
            truncated=never,
            worth=reward,
            disagreement=out[..., : self.size].std(0).mean(-1),
        )

    def _predict(self, observation: Tensor, action: Tensor) -> Tensor:
        """float32 [E, B, D + 2]: change and reward in units of their scales, logit of termination."""
        if self.discrete:
            taken = F.one_hot(action.long(), self.actions).float()
        else:
            taken = action.reshape(len(action), -1).float()
        return self.net(torch.cat([(observation - self.centre) / self.scale, taken], 1))

    def ensemble_loss(self, batch: dict[str, Tensor]) -> Tensor:
        out = self._predict(batch["observation"], batch["action"])
        weight = batch["bootstrap"].float().T  # [E, B]
        change = (batch["next"] - batch["observation"]) / self.change
        loss = (out[..., : self.size] - change).pow(2).mean(-1)
        loss = loss + (out[..., -2] - batch["reward"] / self.worth).pow(2)
        ended = batch["terminated"].float().expand(self.members, -1)
        loss = loss + F.binary_cross_entropy_with_logits(out[..., -1], ended, reduction="none")
        return (loss * weight).mean()

    @torch.no_grad()
    def error(self, rows: Columns, device: torch.device) -> dict[str, float]:
        """``error``: root mean square of the one-step error over that of predicting no change."""
        action, after = (torch.as_tensor(rows[k], device=device) for k in ("action", "next"))
        state = self.states(rows, device)
        step = self.step(state, action, None)
        wrong, moved = (step.observation - after) / self.change, (after - state.observation) / self.change
        return {"error": (wrong.pow(2).mean() / moved.pow(2).mean().clamp(min=1e-12)).sqrt().item()}
