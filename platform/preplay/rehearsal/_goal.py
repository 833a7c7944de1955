"""Sub-goals: states to reach, and the world in which reaching them is all that counts."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from preplay.rehearsal._world import ImaginedStep, World, WorldWrapper


@dataclass(frozen=True)
class SubGoal:
    """Something to reach: a name that people and language models understand, and a test on states [B, ...]."""

    name: str
    reached: Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class GoalWorld(WorldWrapper):
    """A world whose only reward is 1 for reaching a sub-goal, which ends the session.

    Where the world itself ends without the sub-goal reached, nothing is paid.
    """

    world: World
    goal: SubGoal

    def step(self, state: np.ndarray, action: np.ndarray, noise: np.ndarray) -> ImaginedStep:
        """The world's step with the sub-goal's reward and end."""
        result = super().step(state, action, noise)
        reached = self.goal.reached(result.state)
        return ImaginedStep(
            result.state,
            reached.astype(np.float64),
            np.where(reached, 1.0, result.terminated),
            result.truncated,
            result.uncertainty,
        )
