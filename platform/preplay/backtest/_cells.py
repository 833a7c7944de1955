"""Stages and grounded action classes: the coarse view in which support is counted and skills are named.

R turns. A cell is a stage (what came back before, how far the session is) with a class (tool, grounding).
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from preplay.actions import Grounding, StructuredTurns

_RARE = 0.005
_LEVELS = ("known names", "unknown names", "refused names", "no names")
_PROGRESS = (0, 1, 2, 4)


@dataclass(frozen=True)
class Cells:
    """int64 [R] codes into ``stages`` and ``classes``; ``cell`` is ``stage * len(classes) + class``."""

    stage: np.ndarray
    action: np.ndarray
    stages: list[str]
    classes: list[str]

    @property
    def cell(self) -> np.ndarray:
        return self.stage * len(self.classes) + self.action

    def name(self, cell: int) -> str:
        """In words, for reports."""
        stage, action = divmod(cell, len(self.classes))
        return f"{self.classes[action]}, {self.stages[stage]}"


def make_cells(turns: StructuredTurns, grounding: Grounding) -> Cells:
    """Name the stage and class of every turn."""
    before = np.where(turns.turn > 0, np.append(0, turns.outcome[:-1]), -1)
    first = np.flatnonzero(turns.turn == 0)
    fine = np.cumsum(~turns.error) - ~turns.error
    fine = fine - fine[first][turns.session]
    progress = np.searchsorted(_PROGRESS, fine, side="right") - 1
    common = np.bincount(turns.tool, minlength=len(turns.tools)) >= _RARE * len(turns)

    def stage_name(before: int, progress: int) -> str:
        return (
            f"after {turns.outcomes[before]} ({_PROGRESS[progress]}+ useful)"
            if before >= 0
            else "at the start"
        )

    def class_name(tool: int, level: int, repeat: int) -> str:
        return (
            f"{turns.tools[tool] if common[tool] else 'rare tools'} with {_LEVELS[level]}{' again' * repeat}"
        )

    stages, stage = _named(stage_name, before, progress)
    classes, action = _named(class_name, turns.tool, _level(grounding), grounding["exact_repeat"])
    return Cells(stage, action, stages, classes)


def _named(name: Callable[..., str], *codes: np.ndarray) -> tuple[list[str], np.ndarray]:
    """Sorted distinct names of the rows' codes, and the number of each row's name, int64 [R]."""
    distinct, place = np.unique(np.column_stack(codes).astype(np.int64), axis=0, return_inverse=True)
    names, number = np.unique([name(*row) for row in distinct.tolist()], return_inverse=True)
    return names.tolist(), number[place.reshape(-1)]


def _level(g: Grounding) -> np.ndarray:
    """How well names (values where there are no names) are grounded: int64 [R] into ``_LEVELS``."""
    has_names = g["names"] > 0
    unknown = np.where(has_names, g["names_unknown"], g["values_unknown"] * (1 - g["values_task"])) > 0
    refused = g["names_refused_here"] > 0
    any_mention = has_names | (g["values"] > 0)
    return np.select([~any_mention, refused, unknown], [3, 2, 1], 0)
