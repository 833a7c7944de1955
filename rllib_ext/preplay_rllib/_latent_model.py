"""World model with a belief over the history, for vectors and images that do not tell the whole state.

An observation has a *code* (a vector: itself, normalised; an image: what a small network makes of it). A recurrent
memory reads code after code with the action in between. From code, belief and action an ensemble predicts the change
of the code, reward and termination; the predicted code is what the memory reads next, and its observation is what the
policy sees. In training the last steps of each stretch of real rows are predicted from predictions in the same way.
"""

from dataclasses import dataclass

import gymnasium as gym
import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from preplay_rllib._latent_nets import GRUMemory, ImageCodec, VectorCodec
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
        self.codec = self._codec(config["hidden"])
        self.memory = GRUMemory(2 * self.codec.size + self.actions, config["hidden"])
        inputs = self.codec.size + config["hidden"] + self.actions
        self.net = EnsembleMLP(
            self.members, [inputs, config["hidden"], config["hidden"], self.codec.size + 2]
        )
        self.register_buffer("change", torch.ones(self.codec.size))
        self.register_buffer("worth", torch.ones(1))

    def _codec(self, size: int) -> VectorCodec | ImageCodec:
        *sides, last = self.observation_space.shape
        if not sides:
            return VectorCodec(last // self.frames)
        return ImageCodec((*sides, last // self.frames), size)

    @torch.no_grad()
    def fit_scales(self, rows: Columns) -> None:
        """Scales of observations, of the changes of their codes and of rewards."""
        names, device = ("observation", "next", "reward"), self.worth.device
        observation, after, reward = (torch.as_tensor(rows[k], device=device) for k in names)
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
            step = _Step(codes[:, t - 1], past["past_action"][:, t - 1], known[:, t - 1]) if t else None
            belief = self._remember(belief, codes[:, t], step)
        return LatentState(codes[:, -1], belief, self._recent(seen, known))

    def _recent(self, seen: Tensor, known: Tensor) -> Tensor:
        """What the policy saw, of observations [B, W + 1, ...]: unknown ones are the first one again."""
        first = known.shape[1] - known.sum(1)
        steps = torch.arange(seen.shape[1] - self.frames, seen.shape[1], device=seen.device)
        at = torch.maximum(steps, first[:, None])
        picked = seen[torch.arange(len(seen), device=seen.device)[:, None], at]
        return torch.cat(self.codec.shown(picked).unbind(1), -1)

    def _remember(self, belief: Tensor, code: Tensor, step: "_Step | None") -> Tensor:
        """The belief after reading a code, how it differs from the one before and the action in between; without a
        known step before, that of an episode that begins."""
        if step is None or not self.remembers:
            blank = code.new_zeros(len(code), self.codec.size + self.actions)
            return self.memory.update(torch.zeros_like(belief), torch.cat([code, blank], 1))
        known = step.known[:, None]
        led = torch.cat([(code - step.code) / self.change, self._one_hot(step.action)], 1)
        return self.memory.update(belief * known, torch.cat([code, led * known], 1))

    def _one_hot(self, action: Tensor) -> Tensor:
        if self.discrete:
            return F.one_hot(action.long(), self.actions).float()
        return action.reshape(len(action), -1).float()

    def observe(self, state: LatentState) -> Tensor:
        return state.recent

    def step(self, state: LatentState, action: Tensor, generator: torch.Generator | None) -> Imagined:
        out = self._predict(state.code, state.belief, action)
        chosen = out.mean(0) if generator is None else self._one_member(out, generator)
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

    def _one_member(self, out: Tensor, generator: torch.Generator | None) -> Tensor:
        """float32 [B, ...] of [E, B, ...]: for each row that of a member drawn anew."""
        rows = torch.arange(out.shape[1], device=out.device)
        return out[draw_members(self.members, len(rows), generator, out.device), rows]

    def _advance(self, state: LatentState, action: Tensor, chosen: Tensor) -> LatentState:
        code = state.code + chosen[:, :-2] * self.change
        seen = self.codec.decode(code)
        step = _Step(state.code, action, torch.ones(len(action), dtype=torch.bool, device=code.device))
        belief = self._remember(state.belief, code, step)
        return LatentState(code, belief, torch.cat([state.recent[..., seen.shape[-1] :], seen], -1))

    def _predict(self, code: Tensor, belief: Tensor, action: Tensor) -> Tensor:
        """float32 [E, B, C + 2]: change of the code and reward in units of their scales, logit of termination."""
        return self.net(torch.cat([code, belief, self._one_hot(action)], 1))

    def ensemble_loss(self, batch: dict[str, Tensor]) -> Tensor:
        """Mean over the steps of stretches of real rows; the last few, how many differs from batch to batch, are
        predicted from predictions of a member drawn anew at each step, as in imagination."""
        stretch = _Stretch.of(batch)
        codes, steps = self.codec.encode(stretch.observation), stretch.action.shape[1]
        fixed = codes.detach()  # what is predicted must not come closer by itself
        real = steps - int(torch.randint(self.open_loop, ()))
        belief, code, losses = self.memory.begin(len(codes), codes.device), fixed[:, 0], []
        for t in range(steps):
            step = _Step(codes[:, t - 1], stretch.action[:, t - 1], stretch.known[:, t - 1]) if t else None
            seen, code = codes[:, t], fixed[:, t]
            belief = self._remember(belief, seen, step)
            out = self._predict(seen, belief, stretch.action[:, t])
            losses.append(self._step_loss(out, (fixed[:, t + 1] - code) / self.change, stretch, t))
            if t + 1 >= real:
                predicted = code + self._one_member(out, None)[:, :-2].detach() * self.change
                codes, fixed = (_with(c, t + 1, predicted, stretch.known[:, t]) for c in (codes, fixed))
        loss = torch.stack(losses).sum() / (stretch.known.sum() * self.members)
        return loss + self.codec.loss(codes, stretch.observation)

    def _step_loss(self, out: Tensor, change: Tensor, stretch: "_Stretch", t: int) -> Tensor:
        """float32 [] of step t. Only the last step of a stretch can be an end, and it is the one that was sampled:
        in reward and termination it counts as much as all others together."""
        last = t == stretch.action.shape[1] - 1
        ended = stretch.terminated[:, t].float().expand(self.members, -1)
        rare = F.binary_cross_entropy_with_logits(out[..., -1], ended, reduction="none")
        rare = rare + (out[..., -2] - stretch.reward[:, t] / self.worth).pow(2)
        loss = (out[..., :-2] - change).pow(2).mean(-1) + rare * (t if last else 1)
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


def _with(codes: Tensor, t: int, predicted: Tensor, known: Tensor) -> Tensor:
    """The codes [B, T, C] with those of step t replaced where the step before is known."""
    out = codes.clone()
    out[:, t] = torch.where(known[:, None], predicted, codes[:, t])
    return out


@dataclass(frozen=True)
class _Step:
    """The step before: code float32 [B, C], action [B, ...], and whether there was one, bool [B]."""

    code: Tensor
    action: Tensor
    known: Tensor


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
