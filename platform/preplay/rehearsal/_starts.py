"""Where imagination starts from."""

from dataclasses import dataclass

import numpy as np

from preplay.errors import PreplayError
from preplay.rehearsal._experience import Experience
from preplay.rehearsal._world import World

POOL = 4
"""Replayed states looked at for each uncertain one that is taken."""


@dataclass(frozen=True)
class Starts:
    """Shares of the kinds of start (they need not sum to 1).

    Where a kind has nothing to offer (no session has succeeded yet, no current state was given), its share goes to
    replayed states.

    Args:
        replayed: States of real sessions, each equally likely.
        current: Where the agent stands now.
        success: States on the way to a past success.
        uncertain: Replayed states in which the world knows least about the action that was taken.
    """

    replayed: float = 1.0
    current: float = 0.0
    success: float = 0.0
    uncertain: float = 0.0

    def __post_init__(self):
        shares = [self.replayed, self.current, self.success, self.uncertain]
        if min(shares) < 0 or sum(shares) <= 0:
            raise ValueError(f"shares of starts {shares} must not be negative, and one must be positive")

    def draw(
        self,
        count: int,
        experience: Experience,
        world: World,
        rng: np.random.Generator,
        current: np.ndarray | None = None,
    ) -> np.ndarray:
        """States [count, ...] in the shares, as far as they can be met.

        Raises:
            PreplayError: When there is neither experience nor a current state.
        """
        if not len(experience):
            if current is None or not len(current):
                raise PreplayError(
                    "there is nothing to rehearse from: no experience and no current state.",
                    fix="Collect a session first, or give the current states.",
                )
            return current[rng.integers(len(current), size=count)]
        kinds = self._kinds(count, experience, current, rng)
        steps = experience.transitions
        parts = [steps.state[rng.integers(len(steps), size=kinds[0])]]
        if kinds[1] and current is not None:
            parts.append(current[rng.integers(len(current), size=kinds[1])])
        if kinds[2]:
            parts.append(steps.state[rng.choice(np.flatnonzero(steps.success), kinds[2])])
        if kinds[3]:
            parts.append(_uncertain(kinds[3], experience, world, rng))
        return np.concatenate(parts)

    def _kinds(
        self, count: int, experience: Experience, current: np.ndarray | None, rng: np.random.Generator
    ) -> np.ndarray:
        """How many of each kind, int64 [4]."""
        shares = np.array([self.replayed, self.current, self.success, self.uncertain], np.float64)
        possible = [
            True,
            current is not None and len(current) > 0,
            experience.transitions.success.any(),
            True,
        ]
        shares[0] += shares[~np.array(possible)].sum()
        shares *= possible
        return rng.multinomial(count, shares / shares.sum())


def _uncertain(count: int, experience: Experience, world: World, rng: np.random.Generator) -> np.ndarray:
    steps = experience.transitions
    rows = rng.integers(len(steps), size=POOL * count)
    noise = rng.standard_normal((len(rows), world.noise_dim))
    known = world.step(steps.state[rows], steps.action[rows], noise).uncertainty
    return steps.state[rows[np.argsort(-known, kind="stable")[:count]]]
