"""Feature blocks of every turn: what went before, what is done, who else does it, what came back.

R turns, P policies. Nothing here knows rewards, the length of a session, or later turns.
"""

from collections import Counter
from dataclasses import dataclass
from typing import Literal

import numpy as np

from preplay.actions import Grounder, Grounding, StructuredTurns, Witnesses
from preplay.backtest._problem import Problem

Representation = Literal["grounding", "agreement", "results", "embedding"]
"""``grounding``: what the action is built on; ``agreement``: and whether others do the same in the task; ``results``:
and what came back, and whether others got the same; ``embedding``: the action's text alone."""
_RARE = 0.005
_GOOD = ("data", "empty", "confirmation", "other")


@dataclass(frozen=True)
class Blocks:
    """Feature blocks, float64 [R, ·], that do not depend on who is left out.

    ``state`` (known before acting) and ``tool`` (what is called).
    """

    state: np.ndarray
    tool: np.ndarray
    good: np.ndarray
    outcome: np.ndarray


class Features:
    """Features of a problem; those that ask other policies are made per set of policies left out.

    Args:
        problem: The logged sessions.
        embedding: float32 [R, D] action embeddings, for the representation ``embedding``.
    """

    def __init__(self, problem: Problem, embedding: np.ndarray | None = None):
        self.problem, self.embedding = problem, embedding
        self.ground = Grounder(problem.turns)
        self.blocks = _blocks(problem.turns)
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
        known = (grounding["names_unknown"] == 0) & (grounding["names"] > 0)
        plain = np.column_stack([blocks.state, blocks.tool, grounding.features, known])
        others = self._others(without)
        same = np.column_stack([plain, others.exact, others.skeleton])
        made: dict[Representation, np.ndarray] = {"grounding": plain, "agreement": same}
        if "results" in self.representations:
            agreed = others.lines
            made["results"] = np.column_stack([same, blocks.outcome, agreed, agreed * blocks.good[:, None]])
        if self.embedding is not None:
            made["embedding"] = np.column_stack([turns.turn, self.embedding])
        return made


def _blocks(turns: StructuredTurns) -> Blocks:
    first = np.flatnonzero(turns.turn == 0)
    kinds = np.array(turns.outcomes)[turns.outcome]
    good = np.isin(kinds, _GOOD)
    outcome = np.eye(len(turns.outcomes))[turns.outcome]
    before = np.vstack([np.zeros((1, outcome.shape[1])), outcome[:-1]]) * (turns.turn > 0)[:, None]
    tools = _tool_bag(turns)
    shown = np.bincount(turns.facts.row, minlength=len(turns)).astype(np.float64)
    running = np.column_stack([good, turns.error, tools, shown])
    past = np.cumsum(running, 0) - running
    past -= past[first][turns.session]
    past[:, -1] = np.log1p(past[:, -1])
    mentions = [np.bincount(p.row, minlength=len(turns)) for p in (turns.names, turns.values)]
    kind = np.column_stack([tools, np.eye(4)[turns.status], np.log1p(turns.calls), *map(np.log1p, mentions)])
    return Blocks(np.column_stack([turns.turn, before, past]), kind, good, outcome)


def _tool_bag(turns: StructuredTurns) -> np.ndarray:
    """float64 [R, ·]: which tools (words of their names) an action uses; rare ones are left out."""
    count = np.bincount(turns.tool, minlength=len(turns.tools))
    bags = [set(name.replace("+", " ").split()) for name in turns.tools]
    total: Counter[str] = Counter()
    for bag, n in zip(bags, count.tolist(), strict=True):
        total.update(dict.fromkeys(bag, n))
    words = [w for w, n in sorted(total.items()) if n >= _RARE * len(turns)]
    return np.array([[w in bag for w in words] for bag in bags], np.float64).reshape(len(bags), -1)[
        turns.tool
    ]


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
