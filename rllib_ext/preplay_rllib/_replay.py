"""Real transitions kept for the world model and for the states that branches start from."""

from typing import Any

import numpy as np

Columns = dict[str, np.ndarray]
_PATH = 48
"""Steps before a success that count as the way to it; a first success is found by wandering, most of it no way."""


class Replay:
    """A ring of rows. Row contents are the world model's business, except ``episode`` int64, ``terminated`` bool and
    ``success`` bool, which say where the rare and the useful rows are.

    Every row gets its number of copies in each member's bootstrap, Poisson(1), once and for good: members whose
    samples are redrawn in every update end up alike. Successes are in every member's sample: one that has never seen
    any would veto them all.
    """

    def __init__(self, capacity: int, members: int, seed: int):
        self.capacity, self.members = capacity, members
        self._columns: Columns = {}
        self._size = self._next = 0
        self._rng = np.random.default_rng(seed)

    def __len__(self) -> int:
        return self._size

    def add(self, rows: Columns) -> None:
        """Append rows; the oldest make room."""
        count = len(rows["episode"])
        copies = self._rng.poisson(1.0, (count, self.members))
        rows = rows | {
            "bootstrap": np.maximum(copies, rows["success"][:, None]).astype(np.uint8),
            "on_success": np.zeros(count, bool),
        }
        if not self._columns:
            self._columns = {k: np.zeros((self.capacity, *v.shape[1:]), v.dtype) for k, v in rows.items()}
        where = (self._next + np.arange(count)) % self.capacity
        for name, values in rows.items():
            self._columns[name][where] = values
        self._next = int((self._next + count) % self.capacity)
        self._size = min(self._size + count, self.capacity)
        self._mark_successes(rows)

    def _mark_successes(self, rows: Columns) -> None:
        for episode in np.unique(rows["episode"][rows["success"]]):
            path = np.flatnonzero(self._column("episode") == episode)
            age = (self._next - 1 - path) % self.capacity  # the newest row of the episode is the success
            self._column("on_success")[path[np.argsort(age)[:_PATH]]] = True

    @property
    def successes(self) -> int:
        """Rows that ended in success."""
        return int(self._column("success").sum()) if self._size else 0

    def sample(self, count: int, rare_share: float, rng: np.random.Generator) -> Columns:
        """Rows drawn uniformly, a share of them from those that ended an episode by themselves."""
        return self._take(self._mixed(count, rare_share, "terminated", rng))

    def starts(self, count: int, success_share: float, newest: int, rng: np.random.Generator) -> Columns:
        """Rows to branch from, a share of them on the way to a past success, the others among the ``newest``."""
        return self._take(self._mixed(count, success_share, "on_success", rng, newest))

    def _mixed(
        self, count: int, share: float, flag: str, rng: np.random.Generator, newest: int | None = None
    ) -> np.ndarray:
        chosen = np.flatnonzero(self._column(flag))
        first = round(count * share) if len(chosen) else 0
        age = rng.integers(min(newest or self._size, self._size), size=count)
        drawn = (self._next - 1 - age) % self.capacity
        if first:
            drawn[:first] = rng.choice(chosen, first)
        return drawn

    def _column(self, name: str) -> np.ndarray:
        return self._columns[name][: self._size]

    def _take(self, rows: np.ndarray) -> Columns:
        return {name: values[rows] for name, values in self._columns.items()}

    def get_state(self) -> dict[str, Any]:
        """Everything, so that a resumed run draws the same rows."""
        return {
            "columns": {name: values[: self._size].copy() for name, values in self._columns.items()},
            "next": self._next,
            "rng": self._rng.bit_generator.state,
        }

    def set_state(self, state: dict[str, Any]) -> None:
        self._rng.bit_generator.state = state["rng"]
        self._next = state["next"]
        self._columns, self._size = {}, 0
        for name, values in state["columns"].items():
            self._size = len(values)
            self._columns[name] = np.zeros((self.capacity, *values.shape[1:]), values.dtype)
            self._columns[name][: self._size] = values
