"""Distinct texts of actions and observations by number, and what was read from each; new ones may come.

N texts, M mentions of terms.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from preplay.actions._structure import Pairs

STRIDE = 1 << 32
"""A key is the number of a text times this, plus the number of a term."""


class Relation:
    """Which terms N texts hold."""

    def __init__(self, held: Sequence[np.ndarray]):
        self.size = np.array([len(h) for h in held], np.int64)
        self._start = np.append(0, np.cumsum(self.size))
        self._term = np.concatenate([np.zeros(0, np.int64), *held])
        self._keys = np.sort(np.repeat(np.arange(len(held)), self.size) * STRIDE + self._term)

    def of(self, text: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Every term of the texts int64 [B]: its place in them, and the term, int64 [M] each."""
        length = self.size[text]
        place = np.repeat(np.arange(len(text)), length)
        offset = np.arange(len(place)) - np.repeat(np.cumsum(length) - length, length)
        return place, self._term[self._start[text][place] + offset]

    def holds(self, text: np.ndarray, term: np.ndarray) -> np.ndarray:
        """bool [M]: whether each text holds the term; False for text -1."""
        return within(self._keys, text * STRIDE + term)


def within(keys: np.ndarray, key: np.ndarray) -> np.ndarray:
    """bool [M]: whether each key is among the sorted ones."""
    if not len(keys):
        return np.zeros(len(key), bool)
    return keys[np.searchsorted(keys, key).clip(max=len(keys) - 1)] == key


class Action(NamedTuple):
    """One distinct action: terms int64 of its names and values, what it calls, codes of itself and its skeleton."""

    names: np.ndarray
    values: np.ndarray
    bag: np.ndarray
    block: np.ndarray
    exact: int
    skeleton: int


class Observation(NamedTuple):
    """One distinct observation: terms int64 that it shows and refuses, its class as columns, whether it is good."""

    facts: np.ndarray
    rejected: np.ndarray
    outcome: np.ndarray
    good: bool
    error: bool


class Texts:
    """Distinct texts by number, and what is known of each as columns.

    Args:
        logged: Texts of the logged turns.
        records: Of the distinct ones among them, in order of appearance.
        read: What is known of a new text.
    """

    def __init__(
        self, logged: Sequence[str], records: Sequence[Action | Observation], read: Callable[[str], Any]
    ):
        self._number: dict[str, int] = {}
        self.logged = np.array([self._number.setdefault(t, len(self._number)) for t in logged], np.int64)
        self._records, self._read = list(records), read
        self._made: dict[str, Any] = {}

    def numbers(self, texts: Sequence[str]) -> np.ndarray:
        """int64 [N]; new texts are read."""
        for text in texts:
            if text not in self._number:
                self._number[text] = len(self._number)
                self._records.append(self._read(text))
                self._made = {}
        return np.array([self._number[text] for text in texts], np.int64)

    def column(self, name: str) -> np.ndarray:
        """A number, or a row of them, of every text."""
        if name not in self._made:
            self._made[name] = np.array([getattr(record, name) for record in self._records])
        return self._made[name]

    def relation(self, name: str) -> Relation:
        """Terms of every text."""
        if name not in self._made:
            self._made[name] = Relation([getattr(record, name) for record in self._records])
        return self._made[name]


def first_rows(texts: Sequence[str]) -> np.ndarray:
    """Row of the first appearance of each distinct text, in order, int64."""
    seen: dict[str, int] = {}
    for row, text in enumerate(texts):
        seen.setdefault(text, row)
    return np.fromiter(seen.values(), np.int64, len(seen))


def terms_of(pairs: Pairs, rows: np.ndarray) -> list[np.ndarray]:
    """Terms of each of the rows."""
    low, high = (np.searchsorted(pairs.row, rows, side=side) for side in ("left", "right"))
    return [pairs.term[a:b] for a, b in zip(low.tolist(), high.tolist(), strict=True)]
