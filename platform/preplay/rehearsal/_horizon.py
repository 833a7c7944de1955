"""How far to imagine."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

FeaturesOf = Callable[[np.ndarray], np.ndarray]
"""States [B, ...] to features float [B, F]."""


@dataclass(frozen=True)
class Horizon:
    """Steps per branch as a function of the real steps so far, linear between the points given.

    Branches always stop at a predicted end; this is how far they go without one.

    Args:
        schedule: (real steps, imagined steps) points, real steps rising. The first and last value hold outside.
        reinject_every: After so many imagined steps, states are brought back to real ones; 0 never does.
    """

    schedule: tuple[tuple[int, float], ...] = ((0, 15),)
    reinject_every: int = 0

    def __post_init__(self):
        steps = [at for at, _ in self.schedule]
        if not steps or steps != sorted(set(steps)) or min(length for _, length in self.schedule) < 1:
            raise ValueError(
                f"horizon schedule {self.schedule} must rise in real steps and stay at 1 or above"
            )
        if self.reinject_every < 0:
            raise ValueError(f"reinject_every is {self.reinject_every}")

    def at(self, real_steps: int) -> int:
        """Imagined steps per branch now."""
        points, lengths = zip(*self.schedule, strict=True)
        return round(float(np.interp(real_steps, points, lengths)))


@dataclass(frozen=True)
class NearestReal:
    """Brings imagined states back: each becomes the real state whose features are nearest.

    Args:
        states: [N, ...] real states.
        features: float [N, F] of them.
        of: Features of any states, float [B, F] from [B, ...].
    """

    states: np.ndarray
    features: np.ndarray
    of: FeaturesOf

    @classmethod
    def among(cls, states: np.ndarray, of: FeaturesOf) -> "NearestReal":
        """All of these states."""
        return cls(states, of(states), of)

    def __call__(self, imagined: np.ndarray) -> np.ndarray:
        """The nearest real states, [B, ...]."""
        asked = self.of(imagined)
        distance = (self.features**2).sum(1) - 2 * asked @ self.features.T
        return self.states[distance.argmin(1)]
