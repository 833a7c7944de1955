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


def ground(
    turns: StructuredTurns, base: KnowledgeBase | None = None, *, without: tuple[str, ...] = ()
) -> Grounding:
    """Grounding of every action.

    A row's own policy never vouches for it, nor do the policies in ``without``: features of logged policies and
    of one that is evaluated then mean the same.

    Args:
        turns: Turns taken apart.
        base: Knowledge base built from the same turns; built here when absent.
        without: Policies whose sessions must not be known.
    """
    base = base or build_knowledge(turns)
    here = _Here(turns)
    gone = np.isin(turns.policies, without)[None] | np.eye(len(turns.policies), dtype=bool)
    names = _sources(turns, turns.names, here, base, gone)
    values = _sources(turns, turns.values, here, base, gone)
    repeats = [_repeated(turns.session, turns.exact), _repeated(turns.session, turns.skeleton)]
    columns = [*names[:7], *values[:5], *(r > 0 for r in repeats), turns.turn]
    return Grounding(np.stack(columns, 1).astype(np.float64))


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


def _sources(
    turns: StructuredTurns, pairs: Pairs, here: _Here, base: KnowledgeBase, gone: np.ndarray
) -> list[np.ndarray]:
    """Number of mentions per row, then shares: task, seen, base, nowhere, refused here, refused anywhere."""
    row, term = pairs.row, pairs.term
    key = turns.session[row] * here.size + term
    task = np.isin(key, here.task)
    seen = _before(here.shown, key, row)
    refused_here = _before(here.refused, key, row)
    place = turns.environment[row] * len(base.vocabulary) + term
    inside = turns.environment[row] >= 0
    policy = gone[turns.policy[row]]
    in_base = inside & base.kinds["shown"].known(place, policy)
    refused = refused_here | (inside & base.kinds["refused"].known(place, policy) & ~in_base)
    count = np.bincount(row, minlength=len(turns)).astype(np.float64)
    kinds = (task, seen, in_base, ~(seen | in_base), refused_here & ~seen, refused)
    return [count, *(np.bincount(row, k, len(turns)) / np.maximum(count, 1) for k in kinds)]


def _repeated(session: np.ndarray, code: np.ndarray) -> np.ndarray:
    """int64 [R]: how many earlier rows of the session have the same code."""
    order = np.lexsort((np.arange(len(code)), code, session))
    new = np.append(True, (np.diff(session[order]) != 0) | (np.diff(code[order]) != 0))
    start = np.flatnonzero(new)
    place = np.arange(len(code)) - np.repeat(start, np.diff(np.append(start, len(code))))
    result = np.empty(len(code), np.int64)
    result[order] = place
    return result
