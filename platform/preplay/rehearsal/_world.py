"""What rehearsal needs of a world: rows of numbers that can be stepped, whatever the model behind them is.

States are NumPy arrays whose first axis is the batch, so that buffers hold them, branches repeat them and files
keep them without knowing what they mean. Legend: B rows, S numbers of a state, O of an observation, Z noise.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from gymnasium.spaces import Box, Discrete


@dataclass(frozen=True)
class ImaginedStep:
    """One imagined step of B rows.

    Args:
        state: [B, ...] the state after the step.
        reward: float64 [B] expected reward of the step.
        terminated: float64 [B] probability that the session ends by itself with this step.
        truncated: bool [B] the session would be cut after this step (its horizon); not an end of its own.
        uncertainty: float64 [B] how little the model knows about this (state, action); its unit is the world's.
    """

    state: np.ndarray
    reward: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray
    uncertainty: np.ndarray

    def __post_init__(self):
        rows = {len(a) for a in vars(self).values()}
        if len(rows) != 1:
            shapes = {name: array.shape for name, array in vars(self).items()}
            raise ValueError(f"an imagined step needs one entry per row in every field, got {shapes}")


class World(Protocol):
    """A world that can be imagined: learned dynamics, an exact table, or a simulator.

    All its randomness enters as ``noise``: the same noise gives the same step whatever else is in the batch.
    """

    @property
    def action_space(self) -> Discrete | Box:
        """Actions of one row: numbers from 0, or a vector."""
        ...

    @property
    def observation_space(self) -> Box:
        """What a policy sees of one row."""
        ...

    @property
    def noise_dim(self) -> int:
        """Z: standard normal numbers per row and step."""
        ...

    def observe(self, state: np.ndarray) -> np.ndarray:
        """What a policy sees in B states, [B, *observation_space.shape]."""
        ...

    def step(self, state: np.ndarray, action: np.ndarray, noise: np.ndarray) -> ImaginedStep:
        """One step: states [B, ...], actions int64 [B] or float [B, A], noise float64 [B, Z]."""
        ...


class WorldWrapper:
    """Passes everything on to ``world``; a subclass changes the steps and is a world itself."""

    world: World

    @property
    def action_space(self) -> Discrete | Box:
        """The world's."""
        return self.world.action_space

    @property
    def observation_space(self) -> Box:
        """The world's."""
        return self.world.observation_space

    @property
    def noise_dim(self) -> int:
        """The world's."""
        return self.world.noise_dim

    def observe(self, state: np.ndarray) -> np.ndarray:
        """As in the world."""
        return self.world.observe(state)

    def step(self, state: np.ndarray, action: np.ndarray, noise: np.ndarray) -> ImaginedStep:
        """As in the world."""
        return self.world.step(state, action, noise)


def action_count(world: World) -> int:
    """Number of actions of a world with discrete ones; raises ``TypeError`` for another."""
    space = world.action_space
    if not isinstance(space, Discrete):
        raise TypeError(f"this needs discrete actions, but the world has {space}")
    return int(space.n)
