"""Stages and grounded action classes: the coarse view in which support is counted and skills are named.

R turns. A cell is a stage (what came back before, how far the session is) with a class (tool, grounding).
"""

from dataclasses import dataclass

import numpy as np

from preplay.actions import Grounding, StructuredTurns

_RARE = 0.005
_KNOWN, _PARTLY, _REFUSED, _FREE = "known names", "unknown names", "refused names", "no names"
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
    stage_names = [
        f"after {turns.outcomes[b]} ({_PROGRESS[p]}+ useful)" if b >= 0 else "at the start"
        for b, p in zip(before.tolist(), progress.tolist(), strict=True)
    ]
    common = np.bincount(turns.tool, minlength=len(turns.tools)) >= _RARE * len(turns)
    tools = [n if keep else "rare tools" for n, keep in zip(turns.tools, common, strict=True)]
    level = _level(grounding)
    repeat = np.where(grounding["exact_repeat"] > 0, " again", "")
    class_names = [
        f"{tools[t]} with {lv}{r}" for t, lv, r in zip(turns.tool.tolist(), level, repeat, strict=True)
    ]
    stages, stage = np.unique(stage_names, return_inverse=True)
    classes, action = np.unique(class_names, return_inverse=True)
    return Cells(stage, action, stages.tolist(), classes.tolist())


def _level(g: Grounding) -> np.ndarray:
    """How well names (values where there are no names) are grounded."""
    has_names = g["names"] > 0
    unknown = np.where(has_names, g["names_unknown"], g["values_unknown"] * (1 - g["values_task"])) > 0
    refused = g["names_refused_here"] > 0
    any_mention = has_names | (g["values"] > 0)
    return np.select([~any_mention, refused, unknown], [_FREE, _REFUSED, _PARTLY], _KNOWN)
