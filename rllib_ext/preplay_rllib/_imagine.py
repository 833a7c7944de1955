"""Imagination: functions that run on a Learner, where the newest policy and the world model are.

Shapes: B branches, H steps, N = rows that were alive.
"""

import math
from dataclasses import dataclass

import numpy as np
import torch
from ray.rllib.core import DEFAULT_MODULE_ID, Columns
from ray.rllib.core.learner.learner import Learner
from ray.rllib.evaluation.postprocessing import Postprocessing
from torch import Tensor

from preplay_rllib import _replay
from preplay_rllib._model import WORLD_MODEL, EnsembleModule, Imagined
from preplay_rllib._module import IMAGINED, MixedPPOModule

_RARE = 2
"""An action is rare that the policy itself would take no more often than chance makes it."""


@dataclass(frozen=True)
class Branching:
    """How far branches go, and what ends them early."""

    horizon: int
    max_disagreement: float
    gamma: float
    lambda_: float
    rare_actions: bool
    seed: int


@dataclass(frozen=True)
class Batch:
    """Imagined rows as PPO trains on them, and what is worth knowing about them."""

    columns: dict[str, np.ndarray]
    branches: int
    success_rate: float
    mean_disagreement: float


Step = tuple[dict[str, Tensor], Imagined, Tensor]
"""Of B branches: what was done and thought, what it led to, and which of them were alive, bool [B]."""


@torch.no_grad()
def imagine_on_policy(learner: Learner, starts: _replay.Columns, branching: Branching) -> Batch:
    """Branches under the newest policy with their advantages (GAE, cut branches bootstrapped)."""
    policy, model, generator = learner_modules(learner, branching.seed)
    state = model.states(starts, learner.device)
    observation = model.observe(state)
    alive = torch.ones(len(observation), dtype=torch.bool, device=learner.device)
    steps: list[Step] = []
    for _ in range(branching.horizon):
        acted = act(policy, observation, generator)
        imagined = model.step(state, acted[Columns.ACTIONS], generator)
        alive = alive & (imagined.disagreement < branching.max_disagreement)
        steps.append((acted, imagined, alive))
        alive = alive & ~imagined.terminated & ~imagined.truncated
        state, observation = imagined.state, imagined.observation
        if not alive.any():
            break
    return batch_of(policy, steps, branching)


@torch.no_grad()
def imagined_worth(learner: Learner, starts: _replay.Columns, branching: Branching, real_steps: int) -> float:
    """Mean worth of the next steps from these rows, the newest policy exploring as it does in the world."""
    policy, model, generator = learner_modules(learner, branching.seed)
    state = model.states(starts, learner.device)
    observation = model.observe(state)
    alive = torch.ones(len(observation), dtype=torch.bool, device=learner.device)
    total = torch.zeros(len(observation), device=learner.device)
    with torch.random.fork_rng(devices=[]):  # the policy's own draws must not move those of training
        torch.manual_seed(branching.seed)
        for _ in range(branching.horizon):
            step = model.step(state, explore(policy, observation, real_steps), generator)
            total = total + step.worth * alive
            alive = alive & ~step.terminated & ~step.truncated
            state, observation = step.state, step.observation
    return total.mean().item()


def explore(policy, observation: Tensor, real_steps: int) -> Tensor:
    """Actions as the env runner would draw them."""
    out = policy.forward_exploration({Columns.OBS: observation}, t=real_steps)
    if Columns.ACTIONS in out:
        return out[Columns.ACTIONS]
    return policy.get_exploration_action_dist_cls().from_logits(out[Columns.ACTION_DIST_INPUTS]).sample()


def learner_modules(learner: Learner, seed: int):
    modules = learner.module
    generator = torch.Generator(device=learner.device).manual_seed(seed)
    model: EnsembleModule = modules[WORLD_MODEL].unwrapped()  # type: ignore[assignment]
    return modules[DEFAULT_MODULE_ID].unwrapped(), model, generator


def act(
    policy, observation: Tensor, generator: torch.Generator, action: Tensor | None = None
) -> dict[str, Tensor]:
    """Actions of the policy (or these) with their log-probabilities and the values of where they were taken."""
    out = policy.forward_train({Columns.OBS: observation})
    logits = out[Columns.ACTION_DIST_INPUTS]
    dist = policy.get_exploration_action_dist_cls().from_logits(logits)
    if action is None:
        discrete = hasattr(policy.action_space, "n")
        action = _draw(logits, generator) if discrete else dist.sample()
    return {
        Columns.OBS: observation,
        Columns.ACTIONS: action,
        Columns.ACTION_LOGP: dist.logp(action),
        Columns.ACTION_DIST_INPUTS: logits,
        Columns.VF_PREDS: policy.compute_values({}, embeddings=out[Columns.EMBEDDINGS]),
    }


def _draw(logits: Tensor, generator: torch.Generator) -> Tensor:
    return torch.multinomial(torch.softmax(logits, -1), 1, generator=generator).squeeze(1)


def batch_of(policy, steps: list[Step], branching: Branching) -> Batch:
    """What PPO trains on, from the steps of branches."""
    alive = torch.stack([a for _, _, a in steps])  # [H, B]
    values = torch.stack([row[Columns.VF_PREDS] for row, _, _ in steps])
    last = steps[-1][1].observation
    out = policy.forward_train({Columns.OBS: last})
    final = policy.compute_values({}, embeddings=out[Columns.EMBEDDINGS])
    reward = torch.stack([s.reward for _, s, _ in steps])
    terminated = torch.stack([s.terminated for _, s, _ in steps])
    advantages = advantage(
        reward,
        values,
        torch.cat([values[1:], final[None]]),
        terminated,
        alive,
        branching.gamma,
        branching.lambda_,
    )
    success = (torch.stack([s.success for _, s, _ in steps]) & alive).any(0)
    names = (Columns.OBS, Columns.ACTIONS, Columns.ACTION_LOGP, Columns.ACTION_DIST_INPUTS)
    columns = {name: torch.stack([row[name] for row, _, _ in steps])[alive] for name in names}
    columns[Postprocessing.ADVANTAGES] = _scaled(advantages[alive], anything=bool(reward[alive].any()))
    if branching.rare_actions and isinstance(policy, MixedPPOModule) and policy.mix:
        columns |= _at_full_strength(policy, columns)
    columns[Postprocessing.VALUE_TARGETS] = (advantages + values)[alive]
    return Batch(
        columns={name: column.cpu().numpy() for name, column in columns.items()},
        branches=alive.shape[1],
        success_rate=success.float().mean().item(),
        mean_disagreement=torch.stack([s.disagreement for _, s, _ in steps]).mean().item(),
    )


def advantage(
    reward: Tensor,
    value: Tensor,
    next_value: Tensor,
    terminated: Tensor,
    alive: Tensor,
    gamma: float,
    lambda_: float,
) -> Tensor:
    """Generalised advantages, all float32 [H, B]: ``reward[t]`` and ``terminated[t]`` are what the action taken in
    the state of ``value[t]`` led to, ``next_value[t]`` the value of the state that it led to.

    A terminated step is not bootstrapped; a branch that ends in any other way is, with the value of where it ended.
    """
    delta = reward + gamma * next_value * ~terminated - value
    advantages, running = torch.zeros_like(delta), torch.zeros_like(delta[0])
    for t in reversed(range(len(delta))):
        follows = alive[t + 1] if t + 1 < len(delta) else torch.zeros_like(alive[t])
        running = delta[t] + gamma * lambda_ * running * follows
        advantages[t] = running
    return advantages * alive


def _at_full_strength(policy: MixedPPOModule, columns: dict[str, Tensor]) -> dict[str, Tensor]:
    """Rare actions that turned out well are learned as any other; those that turned out badly are left out."""
    advantages = columns[Postprocessing.ADVANTAGES]
    by_chance = policy.mix / columns[Columns.ACTION_DIST_INPUTS].shape[-1]
    rare = columns[Columns.ACTION_LOGP] < math.log(_RARE * by_chance)
    kept = torch.where(rare & (advantages < 0), 0.0, advantages)
    return {Postprocessing.ADVANTAGES: kept, IMAGINED: torch.ones_like(kept)}


def _scaled(advantages: Tensor, anything: bool) -> Tensor:
    """Divided by their spread but by no less than .1, and left alone where nothing was earned: that is noise."""
    if not anything or len(advantages) < 2:
        return advantages
    return advantages / advantages.std().clamp(min=0.1)


def model_error(learner: Learner, rows: _replay.Columns) -> dict[str, float]:
    """One-step error of the world model on real rows."""
    model: EnsembleModule = learner.module[WORLD_MODEL].unwrapped()  # type: ignore[assignment]
    return model.error(rows, learner.device)


def fit_scales(learner: Learner, rows: _replay.Columns) -> None:
    """Give the world model the scales of real training rows."""
    model: EnsembleModule = learner.module[WORLD_MODEL].unwrapped()  # type: ignore[assignment]
    model.fit_scales(rows)
