"""Real experience that rehearsal starts from: whole sessions, oldest forgotten first.

Legend: N kept transitions, T steps of a session.
"""

from collections import deque
from dataclasses import dataclass
from functools import cached_property

import numpy as np


@dataclass(frozen=True)
class Session:
    """One real session of T steps.

    Args:
        state: [T + 1, ...]; the last one is what the session ended or was cut in.
        action: [T, ...]; reward: float64 [T].
        terminated: It ended by itself. A session that was cut or is still going has not.
        success: Whether it reached what it was for.
    """

    state: np.ndarray
    action: np.ndarray
    reward: np.ndarray
    terminated: bool
    success: bool = False

    def __post_init__(self):
        if len(self.state) != len(self.action) + 1 or len(self.action) != len(self.reward):
            raise ValueError(
                f"a session of {len(self.action)} actions has {len(self.state)} states, {len(self.reward)} rewards"
            )

    def __len__(self) -> int:
        return len(self.action)


@dataclass(frozen=True)
class Transitions:
    """N real steps in order; ``terminated`` is true at ends only, never at cuts. ``success`` is the session's."""

    state: np.ndarray
    action: np.ndarray
    reward: np.ndarray
    next_state: np.ndarray
    terminated: np.ndarray
    success: np.ndarray

    def __len__(self) -> int:
        return len(self.reward)


class Experience:
    """The newest sessions, ``capacity`` steps at most (a session is kept whole or not at all, the newest always)."""

    def __init__(self, capacity: int = 100_000):
        self.capacity = capacity
        self.sessions: deque[Session] = deque()
        self._steps = 0

    def __len__(self) -> int:
        return self._steps

    def add(self, session: Session) -> None:
        """Keep a session; the oldest go when there are too many steps."""
        if not len(session):
            return
        self.sessions.append(session)
        self._steps += len(session)
        while self._steps > self.capacity and len(self.sessions) > 1:
            self._steps -= len(self.sessions.popleft())
        self.__dict__.pop("transitions", None)

    @cached_property
    def transitions(self) -> Transitions:
        """All kept steps, oldest first."""
        kept = list(self.sessions)
        lengths = [len(s) for s in kept]
        ends = np.cumsum(lengths) - 1
        terminated = np.zeros(sum(lengths), bool)
        terminated[ends] = [s.terminated for s in kept]
        return Transitions(
            np.concatenate([s.state[:-1] for s in kept]),
            np.concatenate([s.action for s in kept]),
            np.concatenate([s.reward for s in kept]),
            np.concatenate([s.state[1:] for s in kept]),
            terminated,
            np.repeat([s.success for s in kept], lengths),
        )
