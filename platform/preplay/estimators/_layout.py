"""Turns ordered by step: sessions by falling length, so that those alive at step t are the first ones.

Shapes: S sessions, R turns, T steps. "By step" arrays hold step 0 of all sessions, then step 1 of those that
have one, and so on: sums over sessions at a step are sums over a slice, without padding.
"""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Layout:
    """Where each turn stands in step order.

    Args:
        offsets: int64 [S + 1] of the sessions in their own order.
        order: int64 [S], sessions by falling length; equal lengths keep their order.
        lengths: int64 [S], their lengths in that order.
        starts: int64 [T + 1], where each step begins in by-step arrays.
        index: int64 [R], row in session order of each by-step row.
    """

    offsets: np.ndarray
    order: np.ndarray
    lengths: np.ndarray
    starts: np.ndarray
    index: np.ndarray

    @classmethod
    def of(cls, offsets: np.ndarray) -> "Layout":
        """Layout of sessions given by their offsets."""
        lengths = np.diff(offsets)
        order = np.argsort(-lengths, kind="stable")
        ended = np.bincount(lengths)[: lengths.max()]
        alive = len(lengths) - np.cumsum(ended)
        starts = np.concatenate([[0], np.cumsum(alive)])
        steps = np.repeat(np.arange(len(alive)), alive)
        rank = np.arange(offsets[-1]) - starts[steps]
        return cls(offsets, order, lengths[order], starts, offsets[order[rank]] + steps)

    @classmethod
    def single_step(cls, like: "Layout") -> "Layout":
        """One row per session, in the session order of another layout."""
        n = len(like.order)
        ones, rows = np.ones(n, np.int64), np.arange(n + 1)
        return cls(rows, like.order, ones, np.array([0, n]), like.order)

    @property
    def n_steps(self) -> int:
        return len(self.starts) - 1

    @property
    def alive(self) -> np.ndarray:
        """Sessions alive at each step, int64 [T]."""
        return np.diff(self.starts)

    @property
    def rank(self) -> np.ndarray:
        """Position in ``order`` of the session of each by-step row, int64 [R]."""
        return np.arange(self.starts[-1]) - np.repeat(self.starts[:-1], self.alive)

    @property
    def last_rows(self) -> np.ndarray:
        """By-step row of each session's last turn, in layout order; int64 [S]."""
        return self.starts[self.lengths - 1] + np.arange(len(self.order))

    def by_step(self, values: np.ndarray) -> np.ndarray:
        """Reorder values per turn ([R] in session order)."""
        return values[self.index]

    def cumulate(self, values: np.ndarray) -> np.ndarray:
        """Running sum within each session; takes session order, gives by-step order. −inf stays −inf."""
        if len(self.order) < self.n_steps:
            pieces = [
                np.cumsum(values[a:b]) for a, b in zip(self.offsets[:-1], self.offsets[1:], strict=True)
            ]
            return self.by_step(np.concatenate(pieces))
        total = self.by_step(values)
        for t in range(1, self.n_steps):
            now, n = self.starts[t], self.alive[t]
            total[now : now + n] += total[self.starts[t - 1] : self.starts[t - 1] + n]
        return total

    def step_sums(self, values: np.ndarray) -> np.ndarray:
        """Sum of by-step values over the sessions alive at each step, [T]."""
        return np.add.reduceat(values, self.starts[:-1])

    def session_sums(self, values: np.ndarray, factors: np.ndarray) -> np.ndarray:
        """Σ_t factors[t]·values[t] of each session, in session order; takes by-step values."""
        total = np.zeros(len(self.order))
        for t in range(self.n_steps):
            a, b = self.starts[t], self.starts[t + 1]
            total[: b - a] += factors[t] * values[a:b]
        result = np.empty_like(total)
        result[self.order] = total
        return result
