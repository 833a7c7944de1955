"""World model with a belief over the history, for vectors and images that do not tell the whole state.

An observation has a *code* (a vector: itself, normalised; an image: what a small network makes of it). A recurrent
memory reads code after code with the action in between. From code, belief and action an ensemble predicts the change
of the code, reward and termination; the predicted code is what the memory reads next, and its observation is what the
policy sees. In training the last steps of each stretch of real rows are predicted from predictions in the same way.
"""

from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from preplay_rllib._latent_nets import GRUMemory, VectorCodec
from preplay_rllib._model import EnsembleMLP, EnsembleModule, Imagined, draw_members
from preplay_rllib._replay import Columns

_CONSTANT = 1e-3


@dataclass(frozen=True)
class LatentState:
    """B states.

    Args:
        code: float32 [B, C] of the newest observation.
        belief: float32 [B, H] over the history, the newest observation included.
        recent: float32 [B, ...] what the policy sees: the newest observations side by side (see ``Recent``).
    """

    code: Tensor
    belief: Tensor
    recent: Tensor


class LatentModule(EnsembleModule):
    """The ensemble. ``model_config``: members, hidden, memory, frames (observations that the policy sees at once),
    open_loop (most steps predicted from predictions in training)."""

    def setup(self) -> None:
        config = self.model_config
        self.members, self.frames, self.open_loop = config["members"], config["frames"], config["open_loop"]
        self.remembers = config["memory"]
        self.discrete = isinstance(self.action_space, gym.spaces.Discrete)
        self.actions = int(self.action_space.n if self.discrete else np.prod(self.action_space.shape))
        self.codec = VectorCodec(self.observation_space.shape[-1] // self.frames)
        self.memory = GRUMemory(self.codec.size + self.actions, config["hidden"])
        inputs = self.codec.size + config["hidden"] + self.actions
        self.net = EnsembleMLP(
            self.members, [inputs, config["hidden"], config["hidden"], self.codec.size + 2]
        )
        self.register_buffer("change", torch.ones(self.codec.size))
        self.register_buffer("worth", torch.ones(1))

    @torch.no_grad()
    def fit_scales(self, rows: Columns) -> None:
        """Scales of observations, of the changes of their codes and of rewards."""
        observation, after, reward = (torch.as_tensor(rows[k]) for k in ("observation", "next", "reward"))
        self.codec.fit(observation)
        change = self.codec.encode(after) - self.codec.encode(observation)
        for name, values in (("change", change), ("worth", reward[:, None])):
            spread = values.std(0)
            getattr(self, name).copy_(torch.where(spread < _CONSTANT, 1.0, spread))

    def states(self, rows: Columns, device: torch.device) -> LatentState:
        past = {k: torch.as_tensor(rows[k], device=device) for k in ("past_observation", "past_action")}
        known = torch.as_tensor(rows["past_known"], device=device)
        observation = torch.as_tensor(rows["observation"], device=device)
        seen = torch.cat([past["past_observation"], observation[:, None]], 1)
        codes = self.codec.encode(seen)
        belief = self.memory.begin(len(codes), device)
        for t in range(seen.shape[1]):
            before = past["past_action"][:, t - 1] if t else None
            belief = self._remember(belief, codes[:, t], before, known[:, t - 1] if t else None)
        return LatentState(codes[:, -1], belief, self._recent(seen, known))

    def _recent(self, seen: Tensor, known: Tensor) -> Tensor:
        """What the policy saw, of observations [B, W + 1, ...]: unknown ones are the first one again."""
        first = known.shape[1] - known.sum(1)
        steps = torch.arange(seen.shape[1] - self.frames, seen.shape[1], device=seen.device)
        at = torch.maximum(steps, first[:, None])
        picked = seen[torch.arange(len(seen), device=seen.device)[:, None], at]
        return torch.cat(picked.unbind(1), -1)

    def _remember(self, belief: Tensor, code: Tensor, before: Tensor | None, known: Tensor | None) -> Tensor:
        """The belief after reading a code and the action that led to it; nothing where it has no known past."""
        if before is None or known is None or not self.remembers:
            taken = code.new_zeros(len(code), self.actions)
            belief = self.memory.begin(len(code), code.device)
        else:
            taken = self._one_hot(before) * known[:, None]
            belief = belief * known[:, None]
        return self.memory.update(belief, torch.cat([code, taken], 1))

    def _one_hot(self, action: Tensor) -> Tensor:
        if self.discrete:
            return F.one_hot(action.long(), self.actions).float()
        return action.reshape(len(action), -1).float()

    def observe(self, state: LatentState) -> Tensor:
        return state.recent

    def step(self, state: LatentState, action: Tensor, generator: torch.Generator | None) -> Imagined:
        out = self._predict(state.code, state.belief, action)
        if generator is None:
            chosen = out.mean(0)
        else:
            member = draw_members(self.members, len(action), generator, out.device)
            chosen = out[member, torch.arange(len(action), device=out.device)]
        after = self._advance(state, action, chosen)
        never = torch.zeros(len(action), dtype=torch.bool, device=out.device)
        reward = chosen[:, -2] * self.worth
        return Imagined(
            state=after,
            observation=after.recent,
            reward=reward,
            terminated=chosen[:, -1] > 0,
            success=never,
            truncated=never,
            worth=reward,
            disagreement=out[..., : self.codec.size].std(0).mean(-1),
        )

    def _advance(self, state: LatentState, action: Tensor, chosen: Tensor) -> LatentState:
        code = state.code + chosen[:, :-2] * self.change
        seen = self.codec.decode(code)
        known = torch.ones(len(code), dtype=torch.bool, device=code.device)
        belief = self._remember(state.belief, code, action, known)
        return LatentState(code, belief, torch.cat([state.recent[..., seen.shape[-1] :], seen], -1))

    def _predict(self, code: Tensor, belief: Tensor, action: Tensor) -> Tensor:
        """float32 [E, B, C + 2]: change of the code and reward in units of their scales, logit of termination."""
        return self.net(torch.cat([code, belief, self._one_hot(action)], 1))

    def ensemble_loss(self, batch: dict[str, Tensor]) -> Tensor:
        """Mean over the steps of stretches of real rows; the last few, how many differs from batch to batch, are
        predicted from predictions of a member drawn anew at each step, as in imagination."""
        stretch = _Stretch.of(batch)
        codes, steps = self.codec.encode(stretch.observation), stretch.action.shape[1]
        real = steps - int(torch.randint(self.open_loop, ()))
        belief, code, losses = self.memory.begin(len(codes), codes.device), codes[:, 0], []
        for t in range(steps):
            known = stretch.known[:, t - 1] if t else None
            if t < real or known is None:
                code = codes[:, t]
            else:
                code = torch.where(known[:, None], code, codes[:, t])
            belief = self._remember(belief, code, stretch.action[:, t - 1] if t else None, known)
            out = self._predict(code, belief, stretch.action[:, t])
            losses.append(self._step_loss(out, code, codes[:, t + 1], stretch, t))
            member = draw_members(self.members, len(code), None, code.device)
            code = code + out[member, torch.arange(len(code)), :-2] * self.change
        return torch.stack(losses).sum() / (stretch.known.sum() * self.members)

    def _step_loss(self, out: Tensor, code: Tensor, after: Tensor, stretch: "_Stretch", t: int) -> Tensor:
        loss = (out[..., :-2] - (after - code) / self.change).pow(2).mean(-1)
        loss = loss + (out[..., -2] - stretch.reward[:, t] / self.worth).pow(2)
        ended = stretch.terminated[:, t].float().expand(self.members, -1)
        loss = loss + F.binary_cross_entropy_with_logits(out[..., -1], ended, reduction="none")
        return (loss * stretch.bootstrap[:, t].T * stretch.known[:, t]).sum()

    @torch.no_grad()
    def error(self, rows: Columns, device: torch.device) -> dict[str, float]:
        """``error``: root mean square of the one-step error over that of predicting no change."""
        action, after = (torch.as_tensor(rows[k], device=device) for k in ("action", "next"))
        state = self.states(rows, device)
        step = self.step(state, action, None)
        true = self.codec.encode(after)
        wrong, moved = (step.state.code - true) / self.change, (true - state.code) / self.change
        return {"error": (wrong.pow(2).mean() / moved.pow(2).mean().clamp(min=1e-12)).sqrt().item()}


@dataclass(frozen=True)
class _Stretch:
    """Real rows and those before them: observation [B, W + 2, ...], all others [B, W + 1, ...]."""

    observation: Tensor
    action: Tensor
    reward: Tensor
    terminated: Tensor
    bootstrap: Tensor
    known: Tensor

    @classmethod
    def of(cls, batch: dict[str, Tensor]) -> "_Stretch":
        now = {
            k: batch[k][:, None]
            for k in ("observation", "next", "action", "reward", "terminated", "bootstrap")
        }
        past = batch["past_known"].bool()
        return cls(
            observation=torch.cat([batch["past_observation"], now["observation"], now["next"]], 1),
            action=torch.cat([batch["past_action"], now["action"]], 1),
            reward=torch.cat([batch["past_reward"], now["reward"]], 1),
            terminated=torch.cat([torch.zeros_like(past), now["terminated"].bool()], 1),
            bootstrap=torch.cat([batch["past_bootstrap"], now["bootstrap"]], 1).float(),
            known=torch.cat([past, torch.ones_like(past[:, :1])], 1),
        )
