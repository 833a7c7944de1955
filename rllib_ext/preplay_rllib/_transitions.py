"""Imagined transitions for algorithms that learn off-policy, as RLlib's replay buffers hold them."""

from dataclasses import dataclass

import gymnasium as gym
import numpy as np
import torch
from ray.rllib.core.learner.learner import Learner
from ray.rllib.env.single_agent_episode import SingleAgentEpisode
from torch import Tensor

from preplay_rllib import _replay
from preplay_rllib._imagine import Branching, explore, learner_modules

IMAGINED, WEIGHTS, N_STEP = "imagined", "weights", "n_step"
"""Columns that every row of a mixed batch carries, real or not: RLlib lines columns up by name."""


@dataclass(frozen=True)
class Transitions:
    """N imagined transitions, all [N, ...]."""

    observation: np.ndarray
    action: np.ndarray
    reward: np.ndarray
    after: np.ndarray
    terminated: np.ndarray

    def __len__(self) -> int:
        return len(self.reward)

    def episodes(self, spaces: tuple[gym.Space, gym.Space], weight: float) -> list[SingleAgentEpisode]:
        """One-step episodes with the loss weight λ."""
        return [
            SingleAgentEpisode(
                observation_space=spaces[0],
                action_space=spaces[1],
                observations=[self.observation[i], self.after[i]],
                actions=[self.action[i]],
                rewards=[float(self.reward[i])],
                terminated=bool(self.terminated[i]),
                len_lookback_buffer=0,
                extra_model_outputs={WEIGHTS: [weight], N_STEP: [1], IMAGINED: [1.0]},
            )
            for i in range(len(self))
        ]


@torch.no_grad()
def imagine_off_policy(
    learner: Learner, starts: _replay.Columns, branching: Branching, real_steps: int
) -> Transitions:
    """Transitions along branches in which the newest policy explores as it does in the world."""
    policy, model, generator = learner_modules(learner, branching.seed)
    state = model.states(starts, learner.device)
    observation = model.observe(state)
    alive = torch.ones(len(observation), dtype=torch.bool, device=learner.device)
    parts: list[tuple[Tensor, ...]] = []
    for _ in range(branching.horizon):
        action = explore(policy, observation, real_steps)
        step = model.step(state, action, generator)
        alive = alive & (step.disagreement < branching.max_disagreement)
        columns = (observation, action, step.reward, step.observation, step.terminated)
        parts.append(tuple(column[alive] for column in columns))
        alive = alive & ~step.terminated & ~step.truncated
        state, observation = step.state, step.observation
    return Transitions(*(torch.cat(column).cpu().numpy() for column in zip(*parts, strict=True)))
