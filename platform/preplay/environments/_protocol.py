"""What an environment with known dynamics offers: sessions to learn from, and truths to compare with."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import gymnasium
import numpy as np
import pyarrow as pa

from preplay.policies import Policy, StochasticPolicy


@dataclass(frozen=True)
class Sessions:
    """Outcomes of S sessions; every field is an array [S]. ``returns`` is discounted."""

    returns: np.ndarray
    lengths: np.ndarray
    resolved: np.ndarray
    sale: np.ndarray
    churned: np.ndarray

    def columns(self) -> tuple[np.ndarray, ...]:
        """The fields in order."""
        return (self.returns, self.lengths, self.resolved, self.sale, self.churned)


class Environment(Protocol):
    """A text environment whose dynamics are known, with its own policies."""

    @property
    def name(self) -> str:
        """The registered name."""
        ...

    @property
    def task(self) -> str:
        """Instruction of the agent, the same in all sessions."""
        ...

    @property
    def horizon(self) -> int:
        """Turns after which a session is cut."""
        ...

    @property
    def gamma(self) -> float:
        """Discount of one turn."""
        ...

    def gym(self) -> gymnasium.Env[str, str]:
        """One session at a time, as a Gymnasium environment with text spaces."""
        ...

    def behaviour_policies(self) -> Mapping[str, StochasticPolicy]:
        """The policies that write the logs."""
        ...

    def target_policies(self) -> Mapping[str, StochasticPolicy]:
        """Policies that never wrote a log."""
        ...

    def policies(self) -> Mapping[str, StochasticPolicy]:
        """All of them."""
        ...

    def simulate(self, policy: Policy, sessions: int, seed: int) -> pa.Table:
        """Turns of new sessions in ``TURN_SCHEMA``, with the propensities that the policy knows."""
        ...

    def play(self, policy: Policy, sessions: int, seed: int, gamma: float) -> Sessions:
        """Outcomes of new sessions, without keeping their turns."""
        ...
