"""Ways to choose actions inside imagination: at random, by a policy, by a plan, or a first action and then a policy.

Legend: A rows that still run, H steps of a plan.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from gymnasium.spaces import Box, Discrete

from preplay.rehearsal._imagine import Behaviour
from preplay.rehearsal._world import World

ImaginedPolicy = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""(observations [A, ...], uniform draws float64 [A]) to actions [A, ...]. A deterministic one ignores the draws."""

Probabilities = Callable[[np.ndarray], np.ndarray]
"""Observations [A, ...] to the probability of each action, float64 [A, K]."""


@dataclass(frozen=True)
class PolicyActions:
    """A policy on what it sees."""

    policy: ImaginedPolicy
    draws: int = 1

    def actions(
        self, world: World, step: int, rows: np.ndarray, state: np.ndarray, uniform: np.ndarray
    ) -> np.ndarray:
        """The policy's actions."""
        return self.policy(world.observe(state), uniform[:, 0])


@dataclass(frozen=True)
class RandomActions:
    """Uniform over the action space; ``numbers`` is how many numbers an action has."""

    numbers: int = 1

    @property
    def draws(self) -> int:
        """One per number of an action."""
        return self.numbers

    def actions(
        self, world: World, step: int, rows: np.ndarray, state: np.ndarray, uniform: np.ndarray
    ) -> np.ndarray:
        """Uniform actions."""
        return uniform_actions(world.action_space, uniform)


@dataclass(frozen=True)
class PlannedActions:
    """Plans made beforehand, one per branch: [B, H, ...]."""

    plan: np.ndarray
    draws: int = 0

    def actions(
        self, world: World, step: int, rows: np.ndarray, state: np.ndarray, uniform: np.ndarray
    ) -> np.ndarray:
        """The plan's action at this step."""
        return self.plan[rows, step]


@dataclass(frozen=True)
class FirstThen:
    """Given first actions [B, ...], then another behaviour."""

    first: np.ndarray
    then: Behaviour

    @property
    def draws(self) -> int:
        """The other behaviour's."""
        return self.then.draws

    def actions(
        self, world: World, step: int, rows: np.ndarray, state: np.ndarray, uniform: np.ndarray
    ) -> np.ndarray:
        """The given action at the first step."""
        return self.first[rows] if step == 0 else self.then.actions(world, step, rows, state, uniform)


def uniform_actions(space: Discrete | Box, uniform: np.ndarray) -> np.ndarray:
    """Actions [...] or [..., A] from uniform numbers float64 [..., numbers of an action]."""
    if isinstance(space, Discrete):
        return (uniform[..., 0] * int(space.n)).astype(np.int64)
    shaped = uniform.reshape(*uniform.shape[:-1], *space.shape)
    return space.low + shaped * (space.high - space.low)


def action_numbers(space: Discrete | Box) -> int:
    """Numbers of an action."""
    return 1 if isinstance(space, Discrete) else int(np.prod(space.shape))


def draw_by(probabilities: Probabilities, uniform_share: float = 0.0) -> ImaginedPolicy:
    """A policy that draws from probabilities, mixed with ``uniform_share`` of uniform choice."""

    def policy(observation: np.ndarray, uniform: np.ndarray) -> np.ndarray:
        p = probabilities(observation)
        mixed = (1 - uniform_share) * p + uniform_share / p.shape[1]
        return (uniform[:, None] * mixed.sum(1, keepdims=True) >= mixed.cumsum(1)[:, :-1]).sum(1)

    return policy
