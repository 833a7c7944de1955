"""Logged turns as arrays: who follows whom, what came of it, and which sessions are held out.

R rows (turns), W window.
"""

from dataclasses import dataclass

import numpy as np

from preplay.embedding import EmbeddedTurns
from preplay.errors import PreplayError
from preplay.seeding import numpy_rng


@dataclass(frozen=True)
class TurnArrays:
    """Arrays over turns sorted by session; text ids point into the bank of the embedded turns.

    Args:
        observation, action, next_observation, task: int64 [R] bank rows (task -1 where there is none).
        reward, return_to_go: float64 [R].
        terminated: bool [R] the session ended by itself here. A truncated turn is not terminated.
        turn: int64 [R] position in the session.
        session: int64 [R] index of the session.
        held_out: bool [R] the row belongs to a held-out session.
    """

    observation: np.ndarray
    action: np.ndarray
    next_observation: np.ndarray
    task: np.ndarray
    reward: np.ndarray
    return_to_go: np.ndarray
    terminated: np.ndarray
    turn: np.ndarray
    session: np.ndarray
    held_out: np.ndarray

    def __len__(self) -> int:
        return len(self.observation)

    def window_rows(self, window: int) -> np.ndarray:
        """Rows of the last ``window`` turns up to each row, newest last, -1 before the start: int64 [R, W]."""
        rows = np.arange(len(self))[:, None] - np.arange(window - 1, -1, -1)[None, :]
        first = np.arange(len(self)) - self.turn
        return np.where(rows >= first[:, None], rows, -1)

    def rows_of(self, held_out: bool) -> np.ndarray:
        """Indices of the training or of the held-out rows."""
        return np.flatnonzero(self.held_out == held_out)


def turn_arrays(
    data: EmbeddedTurns, *, gamma: float, validation_fraction: float, split_by: str, seed: int
) -> TurnArrays:
    """Arrays of embedded turns with a split by whole sessions or tasks.

    Raises:
        PreplayError: When there are fewer than two sessions (or tasks) to split.
    """
    starts = data.session_starts
    lengths = np.diff(starts)
    reward = data.turns["reward"].to_numpy().astype(np.float64)
    session = np.repeat(np.arange(len(lengths)), lengths)
    group = data.task_id[starts[:-1]] if split_by == "task" else np.arange(len(lengths))
    return TurnArrays(
        # Copies, because memory-mapped columns cannot be written to and torch warns about such arrays.
        observation=np.array(data.observation_id),
        action=np.array(data.action_id),
        next_observation=np.array(data.next_observation_id),
        task=np.array(data.task_id),
        reward=reward,
        return_to_go=return_to_go(reward, starts, gamma),
        terminated=np.array(data.turns["terminated"]),
        turn=np.arange(len(session)) - np.repeat(starts[:-1], lengths),
        session=session,
        held_out=_split(group, validation_fraction, split_by, seed)[session],
    )


def return_to_go(reward: np.ndarray, starts: np.ndarray, gamma: float) -> np.ndarray:
    """Discounted sum of the rewards from each turn to the end of its session, float64 [R].

    >>> return_to_go(np.array([1.0, 2.0, 4.0]), np.array([0, 2, 3]), 0.5)
    array([2., 2., 4.])
    """
    result = reward.astype(np.float64).copy()
    last = starts[1:] - 1
    position = np.arange(len(reward))
    ends = np.repeat(last, np.diff(starts))
    for steps_left in range(1, int(np.diff(starts).max(initial=1))):
        rows = position[ends - position == steps_left]
        result[rows] += gamma * result[rows + 1]
    return result


def _split(group: np.ndarray, fraction: float, split_by: str, seed: int) -> np.ndarray:
    """Which sessions are held out, bool [S]: a share of the groups, at least one, never all."""
    groups = np.unique(group)
    if len(groups) < 2:
        raise PreplayError(
            f"the logs hold only {len(groups)} {split_by}; a part must be held out to judge the model.",
            fix="Add sessions, or split by session." if split_by == "task" else "Add sessions.",
        )
    count = min(len(groups) - 1, max(1, round(fraction * len(groups))))
    chosen = numpy_rng(seed, "held-out", split_by).choice(groups, count, replace=False)
    return np.isin(group, chosen)
