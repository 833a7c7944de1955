"""Where imagined sessions start: logged states, from a session's first turn or from its middle."""

import hashlib
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from preplay.embedding import EmbeddedTurns, TextBank


@dataclass(frozen=True)
class InitialStates:
    """n logged states; texts and embeddings (dimension D) are rows of ``bank``.

    Args:
        bank: Distinct texts and their embeddings.
        observation_id: int64 [n] newest observation.
        task_id: int64 [n], -1 where there is no task.
        history_id: int64 [n, T, 2] earlier (observation, action), oldest first, -1 before the session's start.
        turn: int64 [n] position in the session.
    """

    bank: TextBank
    observation_id: np.ndarray
    task_id: np.ndarray
    history_id: np.ndarray
    turn: np.ndarray

    def __post_init__(self):
        n = len(self.observation_id)
        if not (n == len(self.task_id) == len(self.turn) == len(self.history_id)):
            raise ValueError("observation_id, task_id, history_id and turn must have one row per state")
        if self.history_id.ndim != 3 or self.history_id.shape[2] != 2:
            raise ValueError(f"history_id has shape {self.history_id.shape} instead of [n, T, 2]")

    @classmethod
    def from_turns(cls, turns: EmbeddedTurns, rows: np.ndarray, history: int = 4) -> "InitialStates":
        """The states before the logged turns ``rows`` (int64 [n]), with up to ``history`` earlier turns."""
        starts = turns.session_starts
        first = starts[np.searchsorted(starts, rows, side="right") - 1]
        past = rows[:, None] - np.arange(history, 0, -1)
        pairs = np.stack([turns.observation_id[past], turns.action_id[past]], -1)
        pairs[past < first[:, None]] = -1
        turn = turns.turns["turn"].to_numpy()[rows].astype(np.int64)
        return cls(turns.bank, turns.observation_id[rows], turns.task_id[rows], pairs, turn)

    def __len__(self) -> int:
        return len(self.observation_id)

    def select(self, rows: np.ndarray) -> "InitialStates":
        """The given states; rows may repeat."""
        arrays = (self.observation_id, self.task_id, self.history_id, self.turn)
        return InitialStates(self.bank, *(array[rows] for array in arrays))

    def embeddings(self, ids: np.ndarray) -> np.ndarray:
        """float32 [..., D]; zeros where the id is -1."""
        return self.bank.embeddings[ids] * (ids >= 0)[..., None].astype(np.float32)

    @cached_property
    def content_hash(self) -> str:
        """Equal for equal texts, histories and turns, wherever they lie in the bank."""
        digest = hashlib.sha256(f"{self.history_id.shape}".encode())
        digest.update(self.turn.astype(np.int64).tobytes())
        ids = np.concatenate([self.observation_id, self.task_id, self.history_id.reshape(-1)], dtype=np.int64)
        for i in ids.tolist():
            text = self.bank.texts[i].encode() if i >= 0 else b""
            digest.update(f"{i >= 0} {len(text)}:".encode() + text)
        return digest.hexdigest()
