"""What may be looked at while some policies are left out, and what is predicted from it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from preplay.actions import Grounding
from preplay.backtest._cells import Cells, make_cells
from preplay.backtest._features import Features, Representation


@dataclass(frozen=True)
class Prediction:
    """Predicted value: ``pooled``, and ``folds`` float64 [folds] (NaN: no session there)."""

    pooled: float
    folds: np.ndarray


@dataclass
class View:
    """The logs as seen when some policies are left out: features and cells, made when first needed.

    ``leave`` holds predicted chances to leave unsolved, which all learners of a representation share.
    """

    features: Features
    without: tuple[str, ...]
    made: dict[Representation, np.ndarray] = field(default_factory=dict)
    leave: dict[tuple[str | int, ...], np.ndarray] = field(default_factory=dict)

    def of(self, representation: Representation) -> np.ndarray:
        """float64 [R, F]."""
        if not self.made:
            self.made = self.features.make(self.grounding, self.without)
        return self.made[representation]

    @cached_property
    def grounding(self) -> Grounding:
        return self.features.ground(self.without)

    @cached_property
    def cells(self) -> Cells:
        return make_cells(self.features.problem.turns, self.grounding)


def splits(view: View, targets: Sequence[int], folds: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Training and test rows per part of the environments."""
    problem = view.features.problem
    part = problem.fold % folds
    usable, mine = ~problem.rows_of(view.without), problem.shown_by(targets)
    for f in range(min(folds, problem.folds)):
        test = np.flatnonzero(mine & (part == f))
        if len(test):
            yield np.flatnonzero(usable & (part != f)), test
