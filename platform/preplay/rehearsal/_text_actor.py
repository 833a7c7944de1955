"""From rows back to text: what was chosen inside a text world acts as a policy in the real one."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from preplay.policies import ActionBatch, AgentState, TextEncoder
from preplay.rehearsal._behaviour import ImaginedPolicy
from preplay.rehearsal._manager import RehearsalManager
from preplay.rehearsal._text_world import TextWorld

Choose = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""(states [B, ...] of a world, uniform draws float64 [B]) to actions [B]."""


@dataclass
class TextActor:
    """A policy over texts (``preplay.policies.Policy``) that chooses among a text world's choices.

    Args:
        name: Name in reports.
        world: Turns what the agent sees into a state.
        encoder: The encoder of the world's logs.
        choose: Picks a choice: a network trained inside the world, or rehearsal (:class:`DecideNow`).
        reads: Earlier turns it is given, at least the model's window less one.
    """

    name: str
    world: TextWorld
    encoder: TextEncoder
    choose: Choose
    reads: int = 2
    deterministic: bool = False

    def act(self, states: Sequence[AgentState], rng: np.random.Generator) -> ActionBatch:
        """The text of the choice in every state, from one draw per state."""
        uniform = rng.random(len(states))
        chosen = self.choose(self.world.agent_states(states, self.encoder), uniform)
        return ActionBatch([self.world.choices.texts[i] for i in chosen.tolist()])


@dataclass(frozen=True)
class DecideNow:
    """Rehearse where the manager's trigger says so, and do what ``base`` would do elsewhere.

    Args:
        manager: Imagines and recommends.
        base: Acts without imagination.
        together: States that are imagined together; bounds the memory that branches take.
    """

    manager: RehearsalManager
    base: ImaginedPolicy
    together: int = 32

    def __call__(self, state: np.ndarray, uniform: np.ndarray) -> np.ndarray:
        """Actions [B]."""
        action = self.base(self.manager.world.observe(state), uniform)
        due = np.flatnonzero(self.manager.watch(state, len(state)))
        for first in range(0, len(due), self.together):
            rows = due[first : first + self.together]
            action[rows] = self.manager.act(state[rows]).action
        return action
