"""World model with a belief over the history, for vectors and images that do not tell the whole state.

An observation has a *code* (a vector: itself, normalised; an image: what a small network makes of it). A memory
reads code after code with the action in between. From code, belief and action an ensemble predicts the change of the
code, reward and termination, given a latent that is drawn where chance plays a part; the predicted code is what the
memory reads next, and its observation is what the policy sees. In training the last steps of each stretch of real
rows are predicted from predictions in the same way.
"""

from dataclasses import dataclass

import gymnasium as gym
import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from preplay.errors import PreplayError
from preplay_rllib._latent_nets import AttentionMemory, GRUMemory, ImageCodec, VectorCodec
from preplay_rllib._latent_outcomes import Outcomes
from preplay_rllib._latent_rows import Step, Stretch
from preplay_rllib._model import EnsembleModule, Imagined
from preplay_rllib._replay import Columns

_CONSTANT = 1e-3
_SURPRISE = 0.1
"""Weight of the latent's divergence."""


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
    """The ensemble. ``model_config``: members, hidden, memory (whether there is one) and its kind, context (steps
    that it is made from), categories (of the latent), frames (observations that the policy sees at once), open_loop
    (most steps predicted from predictions in training)."""

    def setup(self) -> None:
        config = self.model_config
        self.members, self.frames, self.open_loop = config["members"], config["frames"], config["open_loop"]
        self.remembers, self.context = config["memory"], config["context"]
        self.discrete = isinstance(self.action_space, gym.spaces.Discrete)
        self.actions = int(self.action_space.n if self.discrete else np.prod(self.action_space.shape))
        hidden = config["hidden"]
        self.codec = self._codec(hidden)
        read = 2 * self.codec.size + self.actions
        self.memory = (
            GRUMemory(read, hidden)
            if config["kind"] == "gru"
            else AttentionMemory(read, hidden, config["context"] + 1)
        )
        features = self.codec.size + hidden + self.actions
        self.outcomes = Outcomes(self.members, features, self.codec.size + 2, hidden, config["categories"])
        self.register_buffer("change", torch.ones(self.codec.size))
        self.register_buffer("worth", torch.ones(1))

    def _codec(self, size: int) -> VectorCodec | ImageCodec:
        shape = tuple(int(side) for side in self.observation_space.shape or ())
        if len(shape) not in (1, 3):
            raise PreplayError(
                f"the latent world model takes vectors and images, not observations of shape {shape}.",
                fix="Flatten the observations, or use another world model.",
            )
        one = (*shape[:-1], shape[-1] // self.frames)
        return VectorCodec(one[0]) if len(one) == 1 else ImageCodec(one, size)

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
            step = Step(codes[:, t - 1], past["past_action"][:, t - 1], known[:, t - 1]) if t else None
            belief = self._remember(belief, codes[:, t], step)
        return LatentState(codes[:, -1], belief, self._recent(seen, known))

    def _recent(self, seen: Tensor, known: Tensor) -> Tensor:
        """What the policy saw, of observations [B, W + 1, ...]: unknown ones are the first one again."""
        first = known.shape[1] - known.sum(1)
        steps = torch.arange(seen.shape[1] - self.frames, seen.shape[1], device=seen.device)
        at = torch.maximum(steps, first[:, None])
        picked = seen[torch.arange(len(seen), device=seen.device)[:, None], at]
        return torch.cat(self.codec.shown(picked).unbind(1), -1)

    def _remember(self, belief: Tensor, code: Tensor, step: Step | None) -> Tensor:
        """The belief after reading a code, how it differs from the one before and the action in between; without a
        known step before, that of an episode that begins."""
        if step is None or not self.remembers:
            blank = code.new_zeros(len(code), self.codec.size + self.actions)
            return self.memory.update(torch.zeros_like(belief), torch.cat([code, blank], 1))
        led = torch.cat([(code - step.code) / self.change, self._one_hot(step.action)], 1)
        led = led * step.known[:, None]
        kept = belief * step.known.view(-1, *[1] * (belief.ndim - 1))
        return self.memory.update(kept, torch.cat([code, led], 1))

    def _one_hot(self, action: Tensor) -> Tensor:
        if self.discrete:
            return F.one_hot(action.long(), self.actions).float()
        return action.reshape(len(action), -1).float()

    def observe(self, state: LatentState) -> Tensor:
        return state.recent

    def step(self, state: LatentState, action: Tensor, generator: torch.Generator | None) -> Imagined:
        features = self._features(state.code, state.belief, action)
        out = self.outcomes(features, self.outcomes.guess(features, generator))
        chosen = out.mean(0) if generator is None else self.outcomes.of_one(out, generator)
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
        step = Step(state.code, action, torch.ones(len(action), dtype=torch.bool, device=code.device))
        belief = self._remember(state.belief, code, step)
        return LatentState(code, belief, torch.cat([state.recent[..., seen.shape[-1] :], seen], -1))

    def _features(self, code: Tensor, belief: Tensor, action: Tensor) -> Tensor:
        return torch.cat([code, self.memory.read(belief), self._one_hot(action)], 1)

    def ensemble_loss(self, batch: dict[str, Tensor]) -> Tensor:
        """Mean over the steps of stretches of real rows; the last few, how many differs from batch to batch, are
        predicted from predictions of a member drawn anew at each step, as in imagination."""
        stretch = Stretch.of(batch)
        codes = self.codec.encode(stretch.observation)
        fixed = codes.detach()  # what is predicted must not come closer by itself
        real = stretch.steps - int(torch.randint(self.open_loop, ()))
        belief, losses = self.memory.begin(len(codes), codes.device), []
        for t in range(stretch.steps):
            belief = self._remember(belief, codes[:, t], stretch.before(t, codes))
            features = self._features(codes[:, t], belief, stretch.action[:, t])
            change = (fixed[:, t + 1] - fixed[:, t]) / self.change
            followed = torch.stack([stretch.reward[:, t] / self.worth, stretch.terminated[:, t]], 1)
            latent, surprise = self.outcomes.infer(features, torch.cat([change, followed], 1))
            out = self.outcomes(features, latent)
            loss = self._step_loss(out, change, followed, last=t == stretch.steps - 1) + _SURPRISE * surprise
            losses.append(loss * stretch.bootstrap[:, t].T * stretch.known[:, t])
            if t + 1 >= real:
                said = self.outcomes.of_one(out, None)[:, :-2].detach()  # members stay independent
                predicted = fixed[:, t] + said * self.change
                codes, fixed = (_with(c, t + 1, predicted, stretch.known[:, t]) for c in (codes, fixed))
        loss = torch.stack(losses).sum() / (stretch.known.sum() * self.members)
        return loss + self.codec.loss(codes, stretch.observation)

    def _step_loss(self, out: Tensor, change: Tensor, followed: Tensor, last: bool) -> Tensor:
        """float32 [E, B]. Only the last step of a stretch can be an end, and it is the one that was sampled: in
        reward and termination it counts as much as all others together."""
        reward, ended = followed.unbind(1)
        rare = F.binary_cross_entropy_with_logits(
            out[..., -1], ended.expand(self.members, -1), reduction="none"
        )
        rare = rare + (out[..., -2] - reward).pow(2)
        return (out[..., :-2] - change).pow(2).mean(-1) + rare * (self.context if last else 1)

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
