"""Features of every turn: what went before, what is done, who else does it, what came back.

R turns, P policies. Nothing here knows rewards, the length of a session, or later turns.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from preplay.actions import Grounder, Grounding, StructuredTurns, Witnesses, make_blocks
from preplay.backtest._problem import Problem

Representation = Literal["grounding", "agreement", "results", "embedding"]
"""``grounding``: what the action is built on; ``agreement``: and whether others do the same in the task; ``results``:
and what came back, and whether others got the same; ``embedding``: the action's text alone."""


class Features:
    """Features of a problem; those that ask other policies are made per set of policies left out.

    Args:
        problem: The logged sessions.
        embedding: float32 [R, D] action embeddings, for the representation ``embedding``.
    """

    def __init__(self, problem: Problem, embedding: np.ndarray | None = None):
        self.problem, self.embedding = problem, embedding
        self.ground = Grounder(problem.turns)
        self.blocks = make_blocks(problem.turns)
        self._others = _Others(problem.turns)
        richest: Representation = "agreement" if problem.leaks.stale_result else "results"
        more: list[Representation] = [] if embedding is None else ["embedding"]
        self.representations: list[Representation] = ["grounding", richest, *more]

    def make(self, grounding: Grounding, without: tuple[str, ...]) -> dict[Representation, np.ndarray]:
        """float64 [R, ·] per representation; no policy in ``without`` vouches for anything.

        Args:
            grounding: Of the problem's turns, without the same policies.
            without: Policies left out.
        """
        turns, blocks = self.problem.turns, self.blocks
        plain = blocks.with_grounding(grounding)
        others = self._others(without)
        same = np.column_stack([plain, others.exact, others.skeleton])
        made: dict[Representation, np.ndarray] = {"grounding": plain, "agreement": same}
        if "results" in self.representations:
            agreed = others.lines
            made["results"] = np.column_stack([same, blocks.outcome, agreed, agreed * blocks.good[:, None]])
        if self.embedding is not None:
            made["embedding"] = np.column_stack([turns.turn, self.embedding])
        return made


@dataclass(frozen=True)
class _Agreement:
    """Share of the other policies that did, or saw, the same in the same task.

    Args:
        exact, skeleton: float64 [R] of the action as a whole, and of its tools and identifiers.
        lines: float64 [R, 2] of the lines of the observation that followed, mean and most.
    """

    exact: np.ndarray
    skeleton: np.ndarray
    lines: np.ndarray


class _Others:
    """Agreement with the other policies, for any set of left-out ones."""

    def __init__(self, turns: StructuredTurns):
        self._turns = turns
        every = np.arange(len(turns))
        self._exact, self._skeleton = (_same(turns, c, every) for c in (turns.exact, turns.skeleton))
        self._lines = _same(turns, turns.lines.term, turns.lines.row)

    def __call__(self, without: tuple[str, ...]) -> _Agreement:
        turns = self._turns
        gone = np.flatnonzero(np.isin(turns.policies, without))
        left = np.maximum(len(turns.policies) - len(gone) - ~np.isin(turns.policy, gone), 1)
        exact, skeleton = (found.count(gone) / left for found in (self._exact, self._skeleton))
        agreed = self._lines.count(gone) / left[turns.lines.row]
        most = np.zeros(len(turns))
        np.maximum.at(most, turns.lines.row, agreed)
        count = np.bincount(turns.lines.row, minlength=len(turns)).clip(1)
        mean = np.bincount(turns.lines.row, agreed, len(turns)) / count
        return _Agreement(exact, skeleton, np.column_stack([mean, most]))


def _same(turns: StructuredTurns, code: np.ndarray, row: np.ndarray) -> Witnesses:
    """Which policies have a row with the code (int64 [N]) in the task of each row int64 [N]."""
    key = turns.question[row] * (int(code.max(initial=0)) + 1) + code
    keys, place = np.unique(key, return_inverse=True)
    seen = np.zeros((len(keys), len(turns.policies)), bool)
    seen[place, turns.policy[row]] = True
    return Witnesses(place, turns.policy[row], seen)
