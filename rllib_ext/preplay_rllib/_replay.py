"""Real transitions kept for the world model and for the states that branches start from."""

from typing import Any

import numpy as np

Columns = dict[str, np.ndarray]
_PAST = ("observation", "action", "reward", "bootstrap")
_PATH = 48
"""Steps before a success that count as the way to it; a first success is found by wandering, most of it no way."""


class Replay:
    """A ring of rows. Row contents are the world model's business, except ``episode`` int64, ``terminated`` bool and
    ``success`` bool, which say where the rare and the useful rows are.

    Every row gets its number of copies in each member's bootstrap, Poisson(1), once and for good: members whose
    samples are redrawn in every update end up alike. Successes are in every member's sample: one that has never seen
    any would veto them all.

    With a ``context`` of W, rows come with the W rows before them in their episode, oldest first, as columns
    ``past_observation``, ``past_action``, ``past_reward`` and ``past_bootstrap`` [N, W, ...] and ``past_known``
    bool [N, W], which is false before the episode began (or where it is no longer kept).
    """

    def __init__(self, capacity: int, members: int, seed: int, context: int = 0):
        self.capacity, self.members, self.context = capacity, members, context
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
        if self.context:
            rows["back"] = self._back(rows["episode"])
        if not self._columns:
            self._columns = {k: np.zeros((self.capacity, *v.shape[1:]), v.dtype) for k, v in rows.items()}
        where = (self._next + np.arange(count)) % self.capacity
        for name, values in rows.items():
            self._columns[name][where] = values
        self._next = int((self._next + count) % self.capacity)
        self._size = min(self._size + count, self.capacity)
        self._mark_successes(rows)

    def _back(self, episode: np.ndarray) -> np.ndarray:
        """int64: how many rows before each of the new ones the row before it in its episode lies; 0 if nowhere."""
        back = np.zeros(len(episode), np.int64)
        for number in np.unique(episode):
            new = np.flatnonzero(episode == number)
            back[new[1:]] = np.diff(new)
            kept = np.flatnonzero(self._column("episode") == number) if self._size else new[:0]
            if len(kept):
                age = (self._next - 1 - kept) % self.capacity
                back[new[0]] = age.min() + 1 + new[0]
        return back

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
        return self._with_past(self._mixed(count, rare_share, "terminated", rng))

    def sample_alone(self, count: int, rng: np.random.Generator) -> Columns:
        """Rows drawn uniformly, without their past."""
        return self._take(self._mixed(count, 0.0, "terminated", rng))

    def newest(self, count: int) -> Columns:
        """The newest rows, oldest of them first."""
        return self._with_past((self._next - np.arange(min(count, self._size), 0, -1)) % self.capacity)

    def starts(self, count: int, success_share: float, newest: int, rng: np.random.Generator) -> Columns:
        """Rows to branch from, a share of them on the way to a past success, the others among the ``newest``."""
        return self._with_past(self._mixed(count, success_share, "on_success", rng, newest))

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

    def _with_past(self, rows: np.ndarray) -> Columns:
        if not self.context:
            return self._take(rows)
        at, known = self._trail(rows)
        past = {f"past_{name}": self._columns[name][at] for name in _PAST}
        return self._take(rows) | past | {"past_known": known}

    def _trail(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """int64 [N, W] where the rows before these are in the ring, and bool [N, W] whether there are any."""
        at = np.repeat(rows[:, None], self.context, 1)
        known = np.zeros(at.shape, bool)
        here, going = rows, np.ones(len(rows), bool)
        for w in reversed(range(self.context)):
            back = self._columns["back"][here]
            age = (self._next - 1 - here) % self.capacity
            going = going & (back > 0) & (age + back < self._size)
            here = np.where(going, (here - back) % self.capacity, here)
            at[:, w], known[:, w] = here, going
        return at, known

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
