"""Grounding: is what an action mentions in the task, in earlier observations, in the knowledge base, or refused?

R rows, M mentions, F features.
"""

from dataclasses import dataclass

import numpy as np

from preplay.actions._knowledge import KnowledgeBase, build_knowledge
from preplay.actions._structure import Pairs, StructuredTurns

FEATURES = (
    "names", "names_task", "names_seen", "names_base", "names_unknown", "names_refused_here", "names_refused",
    "values", "values_task", "values_seen", "values_base", "values_unknown",
    "exact_repeat", "near_repeat", "tries",
)  # fmt: skip
"""Counts of mentions and shares of them (0 where there are none); repeats in this session; tries so far."""


@dataclass(frozen=True)
class Grounding:
    """Grounding features float64 [R, F] in the order of ``FEATURES``."""

    features: np.ndarray

    def __getitem__(self, name: str) -> np.ndarray:
        """One feature, float64 [R]."""
        return self.features[:, FEATURES.index(name)]


class Grounder:
    """Grounding of the same turns for any set of left-out policies; what does not depend on it is found once.

    A row's own policy never vouches for it, nor does one that is left out: features of logged policies and of one
    that is evaluated then mean the same.

    Args:
        turns: Turns taken apart.
        base: Knowledge base built from the same turns; built here when absent.
    """

    def __init__(self, turns: StructuredTurns, base: KnowledgeBase | None = None):
        base = base or build_knowledge(turns)
        here = _Here(turns)
        self._turns = turns
        self._names, self._values = (_Sources(turns, p, here, base) for p in (turns.names, turns.values))
        self._repeats = [_repeated(turns.session, code) > 0 for code in (turns.exact, turns.skeleton)]

    def __call__(self, without: tuple[str, ...] = ()) -> Grounding:
        """Grounding of every action when nothing of the policies in ``without`` is known."""
        gone = np.flatnonzero(np.isin(self._turns.policies, without))
        names, values = self._names.shares(gone), self._values.shares(gone)
        columns = [*names[:7], *values[:5], *self._repeats, self._turns.turn]
        return Grounding(np.stack(columns, 1).astype(np.float64))


def ground(
    turns: StructuredTurns, base: KnowledgeBase | None = None, *, without: tuple[str, ...] = ()
) -> Grounding:
    """Grounding of every action; arguments as for :class:`Grounder`."""
    return Grounder(turns, base)(without)


class _Here:
    """First row of each session at whose end a term was shown, or refused."""

    def __init__(self, turns: StructuredTurns):
        self.size = len(turns.vocabulary)
        works = ~turns.error
        shown = [turns.facts, *(_only(p, works) for p in (turns.names, turns.values))]
        self.shown = self._first(
            turns, np.concatenate([p.row for p in shown]), np.concatenate([p.term for p in shown])
        )
        self.refused = self._first(turns, turns.rejected.row, turns.rejected.term)
        self.task = np.unique(turns.task.row * self.size + turns.task.term)

    def _first(
        self, turns: StructuredTurns, row: np.ndarray, term: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        order = np.argsort(row, kind="stable")
        key, first = np.unique(turns.session[row[order]] * self.size + term[order], return_index=True)
        return key, row[order][first]


def _only(pairs: Pairs, keep: np.ndarray) -> Pairs:
    used = keep[pairs.row]
    return Pairs(pairs.row[used], pairs.term[used])


def _before(known: tuple[np.ndarray, np.ndarray], key: np.ndarray, row: np.ndarray) -> np.ndarray:
    """bool [M]: whether the key was there at the end of an earlier row."""
    keys, first = known
    if not len(keys):
        return np.zeros(len(key), bool)
    place = np.searchsorted(keys, key).clip(max=len(keys) - 1)
    return (keys[place] == key) & (first[place] < row)


class _Sources:
    """Where the mentions of one kind (names, or values) come from."""

    def __init__(self, turns: StructuredTurns, pairs: Pairs, here: _Here, base: KnowledgeBase):
        self._row, self._rows = pairs.row, len(turns)
        key = turns.session[pairs.row] * here.size + pairs.term
        environment, own = turns.environment[pairs.row], turns.policy[pairs.row]
        place = np.where(environment >= 0, environment * len(base.vocabulary) + pairs.term, -1)
        self._shown, self._refused = (base.kinds[kind].find(place, own) for kind in ("shown", "refused"))
        self._seen = _before(here.shown, key, pairs.row)
        self._refused_here = _before(here.refused, key, pairs.row)
        self._count = np.bincount(pairs.row, minlength=self._rows).astype(np.float64)
        self._task, self._seen_share, self._refused_share = map(
            self._share, (np.isin(key, here.task), self._seen, self._refused_here & ~self._seen)
        )

    def shares(self, gone: np.ndarray) -> list[np.ndarray]:
        """Number of mentions per row, then shares: task, seen, base, nowhere, refused here, refused anywhere."""
        known = self._shown.count(gone) > 0
        refused = self._refused_here | (self._refused.count(gone) > 0) & ~known
        base, nowhere, anywhere = map(self._share, (known, ~(self._seen | known), refused))
        return [self._count, self._task, self._seen_share, base, nowhere, self._refused_share, anywhere]

    def _share(self, which: np.ndarray) -> np.ndarray:
        return np.bincount(self._row, which, self._rows) / np.maximum(self._count, 1)


def _repeated(session: np.ndarray, code: np.ndarray) -> np.ndarray:
    """int64 [R]: how many earlier rows of the session have the same code."""
    order = np.lexsort((np.arange(len(code)), code, session))
    new = np.append(True, (np.diff(session[order]) != 0) | (np.diff(code[order]) != 0))
    start = np.flatnonzero(new)
    place = np.arange(len(code)) - np.repeat(start, np.diff(np.append(start, len(code))))
    result = np.empty(len(code), np.int64)
    result[order] = place
    return result
