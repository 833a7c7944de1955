"""What an agent is to preplay: text in, text out, with log-probabilities where they are known."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np


@dataclass(frozen=True, slots=True)
class AgentState:
    """What the agent knows when it acts.

    Args:
        observation: What it newly saw.
        task: Instruction or system prompt of the session.
        history: Earlier ``(observation, action)`` pairs, oldest first, at most ``Policy.reads`` of them.
        turn: Position in the session, from 0.
    """

    observation: str
    task: str | None = None
    history: tuple[tuple[str, str], ...] = ()
    turn: int = 0

    @property
    def text(self) -> str:
        """The state as one text: task, earlier turns, newest observation."""
        parts = [f"[task] {self.task}"] if self.task else []
        for observation, action in self.history:
            parts += [f"[observation] {observation}", f"[action] {action}"]
        return "\n".join([*parts, f"[observation] {self.observation}"])


@dataclass(frozen=True, slots=True)
class ActionBatch:
    """B actions and, where the policy knows them, their log-probabilities (float64 [B])."""

    actions: list[str]
    logprobs: np.ndarray | None = None

    def __post_init__(self):
        if self.logprobs is not None and self.logprobs.shape != (len(self.actions),):
            raise ValueError(f"{len(self.actions)} actions but log-probabilities {self.logprobs.shape}")


@runtime_checkable
class Policy(Protocol):
    """A policy under evaluation.

    ``name`` identifies it in reports. ``reads`` is the number of earlier turns it looks at: callers pass at
    most that much history, so that equal states stay equal. ``deterministic`` says that equal states give
    equal actions, which lets callers ask once per distinct state.
    """

    name: str
    reads: int
    deterministic: bool

    def act(self, states: Sequence[AgentState], rng: np.random.Generator) -> ActionBatch:
        """One action per state. Consumes the same number of draws for the same number of states."""
        ...


@runtime_checkable
class StochasticPolicy(Policy, Protocol):
    """A policy that also knows how likely any action is."""

    def log_prob(self, states: Sequence[AgentState], actions: Sequence[str]) -> np.ndarray:
        """Log-probability of each action in its state, float64 [B]; -inf where it is impossible."""
        ...
