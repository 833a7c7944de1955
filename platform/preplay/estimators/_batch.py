"""Sessions as flat arrays: the one input of every estimator.

Shapes: S sessions, R turns in all, T turns of the longest session. Turns of one session are neighbours,
in order; ``offsets[i]:offsets[i + 1]`` are the turns of session i.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from preplay.errors import PreplayError
from preplay.estimators._layout import Layout

_PER_TURN = ("reward", "log_ratio", "q", "v", "log_cluster_ratio")
_PER_SESSION = ("bootstrap",)


def may_bootstrap(
    terminated: np.ndarray,
    truncated: np.ndarray,
    turns_done: np.ndarray,
    horizon: int | None,
) -> np.ndarray:
    """Whether a value follows a state: the session was cut there, did not end, and the horizon is not reached.

    Args:
        terminated, truncated: bool [N]. Where both are set the session ended: nothing follows.
        turns_done: int [N], turns taken up to and including the one that led to the state.
        horizon: Number of turns the value is about; None when sessions may go on for ever.
    """
    open_end = np.asarray(truncated, bool) & ~np.asarray(terminated, bool)
    return open_end if horizon is None else open_end & (np.asarray(turns_done) < horizon)


@dataclass(frozen=True)
class SessionBatch:
    """Logged sessions and what a target policy makes of them.

    Args:
        offsets: int64 [S + 1], starts at 0, strictly rising, ends at R.
        reward: float64 [R].
        gamma: Discount per turn, in [0, 1]; the first turn is not discounted.
        log_ratio: float64 [R], log π_e(a|s) − log π_b(a|s) of the logged action; −inf where π_e never acts
            so.
        q: float64 [R], Q̂(s_t, a_t) of the target policy.
        v: float64 [R], V̂(s_t) = E_{a~π_e} Q̂(s_t, a).
        log_cluster_ratio: float64 [R], the log-ratio of the probabilities of the logged action's cluster.
        state_cluster: int64 [R], cluster of s_t, from 0.
        bootstrap: float64 [S], V̂ of the state after the last turn; used where ``may_bootstrap`` says so.
        truncated: bool [S], the session was cut (all False when absent).
        terminated: bool [S], the session ended by itself (not ``truncated`` when absent).
        horizon: Number of turns the value is about; a session that reached it has no value to come.
    """

    offsets: np.ndarray
    reward: np.ndarray
    gamma: float = 1.0
    log_ratio: np.ndarray | None = None
    q: np.ndarray | None = None
    v: np.ndarray | None = None
    log_cluster_ratio: np.ndarray | None = None
    state_cluster: np.ndarray | None = None
    bootstrap: np.ndarray | None = None
    truncated: np.ndarray = field(default=None)  # pyright: ignore[reportAssignmentType]
    terminated: np.ndarray = field(default=None)  # pyright: ignore[reportAssignmentType]
    horizon: int | None = None

    def __post_init__(self):
        set_ = object.__setattr__
        set_(self, "offsets", np.asarray(self.offsets, np.int64))
        for name in (*_PER_TURN, *_PER_SESSION):
            if getattr(self, name) is not None:
                set_(self, name, np.asarray(getattr(self, name), np.float64))
        if self.state_cluster is not None:
            set_(self, "state_cluster", np.asarray(self.state_cluster, np.int64))
        sessions = len(self.offsets) - 1
        truncated = np.zeros(sessions, bool) if self.truncated is None else np.asarray(self.truncated, bool)
        set_(self, "truncated", truncated)
        set_(self, "terminated", ~truncated if self.terminated is None else np.asarray(self.terminated, bool))
        self._check()

    @property
    def n_sessions(self) -> int:
        return len(self.offsets) - 1

    @property
    def n_turns(self) -> int:
        return int(self.offsets[-1])

    @property
    def lengths(self) -> np.ndarray:
        """Turns of each session, int64 [S]."""
        return np.diff(self.offsets)

    @cached_property
    def layout(self) -> Layout:
        """Turns ordered by step, computed once."""
        return Layout.of(self.offsets)

    @cached_property
    def value_after_end(self) -> np.ndarray:
        """V̂ of the state after the last turn, 0 where the session is over; float64 [S]."""
        if self.bootstrap is None:
            return np.zeros(self.n_sessions)
        follows = may_bootstrap(self.terminated, self.truncated, self.lengths, self.horizon)
        return np.where(follows, self.bootstrap, 0.0)

    @cached_property
    def full_reward(self) -> np.ndarray:
        """Rewards, the last one with γ·V̂ of what a cut session still had to come; float64 [R]."""
        reward = self.reward.copy()
        reward[self.offsets[1:] - 1] += self.gamma * self.value_after_end
        return reward

    @cached_property
    def returns(self) -> np.ndarray:
        """Discounted return of each session from its first turn, float64 [S]."""
        return self.layout.session_sums(self.layout.by_step(self.full_reward), self.discounts)

    @property
    def discounts(self) -> np.ndarray:
        """γ^t for t = 0 … T − 1."""
        return self.gamma ** np.arange(self.layout.n_steps, dtype=np.float64)

    def require(self, name: str, arrays: Sequence[str]) -> None:
        """Say which array an estimator lacks.

        Raises:
            PreplayError: When one of ``arrays`` is absent.
        """
        for array in arrays:
            if getattr(self, array) is None:
                raise PreplayError(f"{name} needs {array!r}, which these sessions lack.", fix=_FIX[array])

    def select(self, sessions: np.ndarray) -> "SessionBatch":
        """The batch of these sessions (indices, in this order; repeats allowed)."""
        sessions = np.asarray(sessions, np.int64)
        lengths = self.lengths[sessions]
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        rows = np.repeat(self.offsets[sessions] - offsets[:-1], lengths) + np.arange(offsets[-1])
        per_turn = (*_PER_TURN, "state_cluster")
        taken = {n: None if (a := getattr(self, n)) is None else a[rows] for n in per_turn}
        per_session = {
            n: None if (a := getattr(self, n)) is None else a[sessions]
            for n in (*_PER_SESSION, "truncated", "terminated")
        }
        return replace(self, offsets=offsets, **taken, **per_session)

    def _check(self) -> None:
        if self.offsets.ndim != 1 or len(self.offsets) < 2:
            raise PreplayError("there is no session to evaluate.", fix="Check the log and its filters.")
        if self.offsets[0] != 0 or (np.diff(self.offsets) < 1).any():
            raise PreplayError("offsets must start at 0 and rise: every session has at least one turn.")
        if not 0 <= self.gamma <= 1:
            raise PreplayError(f"gamma is {self.gamma}, but a discount lies in [0, 1].")
        sizes = dict.fromkeys((*_PER_TURN, "state_cluster"), self.n_turns)
        sizes |= dict.fromkeys((*_PER_SESSION, "truncated", "terminated"), self.n_sessions)
        for name, size in sizes.items():
            self._check_array(name, size)
        if not (self.terminated | self.truncated).all():
            raise PreplayError(
                "a session neither terminated nor was truncated.",
                where=f"session {int(np.argmin(self.terminated | self.truncated))}",
                fix="Mark sessions whose end is unknown as truncated.",
            )

    def _check_array(self, name: str, size: int) -> None:
        array = getattr(self, name)
        if array is None:
            return
        if array.shape != (size,):
            raise PreplayError(f"{name} has shape {array.shape}, but the sessions need ({size},).")
        bad = ~np.isfinite(array)
        if name in ("log_ratio", "log_cluster_ratio"):
            bad &= ~np.isneginf(array)
        if bad.any():
            row = int(np.argmax(bad))
            raise PreplayError(
                f"{name} is {array[row]} ({int(bad.sum())} such rows).",
                where=f"row {row}",
                fix="Quarantine these rows first." if "log" in name else None,
            )


_FIX = {
    "reward": "Give the rewards.",
    "log_ratio": "Log behaviour propensities, or estimate them with a calibrated classifier.",
    "q": "Fit FQE or a world model first.",
    "v": "Fit FQE or a world model first.",
    "log_cluster_ratio": "Cluster the action embeddings and compare cluster probabilities (clustered_log_ratio).",
    "state_cluster": "Cluster the state embeddings first.",
}
