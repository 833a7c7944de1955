"""When to rehearse."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np


@dataclass(frozen=True)
class Moment:
    """Where B real sessions stand.

    Args:
        real_steps: Real steps so far, of all sessions.
        since_last: Of these, steps since the last rehearsal.
        observation: [B, ...] what the agent sees.
        uncertainty: float64 [B] how little the world knows about what can be done here.
    """

    real_steps: int
    since_last: int
    observation: np.ndarray
    uncertainty: np.ndarray


class Trigger(Protocol):
    """Says in which sessions it is time to rehearse."""

    def due(self, moment: Moment) -> np.ndarray:
        """bool [B]."""
        ...


@dataclass(frozen=True)
class EveryNSteps:
    """After every ``steps`` real steps, everywhere."""

    steps: int

    def __post_init__(self):
        if self.steps < 1:
            raise ValueError(f"rehearsal every {self.steps} steps")

    def due(self, moment: Moment) -> np.ndarray:
        """All rows, once enough steps have passed."""
        return np.full(len(moment.observation), moment.since_last >= self.steps)


@dataclass(frozen=True)
class WhenUncertain:
    """Where the world's uncertainty is above ``threshold``."""

    threshold: float

    def due(self, moment: Moment) -> np.ndarray:
        """The rows above it."""
        return moment.uncertainty > self.threshold


@dataclass(frozen=True)
class AtKeyDecisions:
    """Where a planner marks the decision: ``mark`` takes observations [B, ...] and gives bool [B]."""

    mark: Callable[[np.ndarray], np.ndarray]

    def due(self, moment: Moment) -> np.ndarray:
        """The marked rows."""
        return np.asarray(self.mark(moment.observation), bool)


@dataclass(frozen=True)
class AnyOf:
    """Where at least one of several triggers is due."""

    triggers: tuple[Trigger, ...]

    def due(self, moment: Moment) -> np.ndarray:
        """The union."""
        return np.any([trigger.due(moment) for trigger in self.triggers], axis=0)
