"""A world that is a table: exact where the truth is known, or counted from experience.

Legend: S states, A actions, N observed transitions, B rows. States are int64 [B] numbers below S.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from gymnasium.spaces import Box, Discrete
from scipy.special import ndtr

from preplay.rehearsal._world import ImaginedStep


@dataclass(frozen=True)
class TabularWorld:
    """A Markov decision process as arrays.

    Args:
        transition: float64 [S, A, S] probability of the next state.
        reward: float64 [S, A, S] reward of arriving there.
        terminated: float64 [S, A, S] probability that the arrival ends the session.
        uncertainty: float64 [S, A]; zeros where the table is exact.
    """

    transition: np.ndarray
    reward: np.ndarray
    terminated: np.ndarray
    uncertainty: np.ndarray

    def __post_init__(self):
        states, actions, after = self.transition.shape
        if states != after or self.reward.shape != self.transition.shape != self.terminated.shape:
            raise ValueError(f"tables of shapes {self.transition.shape}, {self.reward.shape}")
        if self.uncertainty.shape != (states, actions):
            raise ValueError(f"uncertainty of shape {self.uncertainty.shape} instead of {(states, actions)}")
        if not np.allclose(self.transition.sum(-1), 1):
            raise ValueError("the probabilities of some (state, action) do not sum to 1")

    @classmethod
    def exact(cls, transition: np.ndarray, reward: np.ndarray, terminated: np.ndarray) -> "TabularWorld":
        """A known process."""
        return cls(transition, reward, terminated, np.zeros(transition.shape[:2]))

    @classmethod
    def counted(
        cls,
        states: int,
        actions: int,
        state: np.ndarray,
        action: np.ndarray,
        reward: np.ndarray,
        next_state: np.ndarray,
        terminated: np.ndarray,
    ) -> "TabularWorld":
        """Frequencies of N observed transitions; what was never tried stays where it is, without reward.

        Uncertainty is ``1 / sqrt(1 + n)`` of the n observations of (state, action).
        """
        shape = (states, actions, states)
        at = np.ravel_multi_index((state, action, next_state), shape)
        count, gained, ended = (
            np.bincount(at, weights, minlength=states * actions * states).reshape(shape)
            for weights in (None, reward, terminated.astype(np.float64))
        )
        seen = np.maximum(count, 1)
        total = count.sum(-1)
        stay = np.broadcast_to(np.eye(states)[:, None], shape)
        transition = np.where(total[..., None] > 0, count / np.maximum(total, 1)[..., None], stay)
        return cls(transition, gained / seen, ended / seen, 1 / np.sqrt(1 + total))

    @property
    def action_space(self) -> Discrete:
        """Numbers below A."""
        return Discrete(self.transition.shape[1])

    @property
    def observation_space(self) -> Box:
        """The state, one-hot."""
        return Box(0, 1, (len(self.transition),), np.float32)

    @property
    def noise_dim(self) -> int:
        """One number draws the next state."""
        return 1

    def observe(self, state: np.ndarray) -> np.ndarray:
        """float32 [B, S], one-hot."""
        return np.eye(len(self.transition), dtype=np.float32)[state]

    def step(self, state: np.ndarray, action: np.ndarray, noise: np.ndarray) -> ImaginedStep:
        """Draw the next state by inversion of the cumulative probabilities."""
        cumulative = self._cumulative[state, action]
        after = (ndtr(noise[:, :1]) >= cumulative[:, :-1]).sum(1)
        at = state, action, after
        return ImaginedStep(
            after,
            self.reward[at],
            self.terminated[at],
            np.zeros(len(after), bool),
            self.uncertainty[state, action],
        )

    @cached_property
    def _cumulative(self) -> np.ndarray:
        return self.transition.cumsum(-1)

    def optimal_values(self, gamma: float, sweeps: int) -> np.ndarray:
        """Values of the best actions with ``sweeps`` steps to go (value iteration from zero), float64 [S, A]."""
        gained = (self.transition * self.reward).sum(-1)
        on = self.transition * (1 - self.terminated)
        q = gained
        for _ in range(sweeps - 1):
            q = gained + gamma * on @ q.max(1)
        return q
