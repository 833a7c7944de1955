"""Embedded logs: turns that point into a bank of distinct texts with one embedding each."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
from pydantic import BaseModel, ConfigDict

from preplay.errors import PreplayError


class EncoderFingerprint(BaseModel):
    """What decides an embedding's value. Two artifacts can be combined only when these are equal."""

    model_config = ConfigDict(frozen=True)

    model: str
    weights_sha256: str
    pooling: str
    dtype: str
    max_tokens: int
    dimension: int


def check_fingerprint(actual: EncoderFingerprint, expect: EncoderFingerprint | None, *, where: str) -> None:
    """Refuse embeddings of another encoder than the expected one (None: any will do).

    Raises:
        PreplayError: Naming both encoders and the fields in which they differ.
    """
    if expect is None or actual == expect:
        return
    here, needed = actual.model_dump(), expect.model_dump()
    differing = [f"{k} is {here[k]!r} instead of {needed[k]!r}" for k in here if here[k] != needed[k]]
    raise PreplayError(
        f"encoder {actual.model!r} where {expect.model!r} is needed: {'; '.join(differing)}.",
        where=where,
        fix="Embed the data again with the needed encoder, or train again on these embeddings.",
    )


@dataclass(frozen=True)
class TextBank:
    """Distinct texts and their embeddings (float32 [N, D], unit norm)."""

    texts: list[str]
    embeddings: np.ndarray

    def __post_init__(self):
        if self.embeddings.ndim != 2 or len(self.texts) != len(self.embeddings):
            raise ValueError(f"{len(self.texts)} texts but embeddings {self.embeddings.shape}")

    @cached_property
    def index(self) -> dict[str, int]:
        """Text to row."""
        return {text: row for row, text in enumerate(self.texts)}


@dataclass(frozen=True)
class EmbeddedTurns:
    """Turns sorted by (session_id, turn) with, per row, the bank rows of its texts (int64 [R]).

    ``task_id`` is -1 where the session has no task.
    """

    turns: pa.Table
    bank: TextBank
    task_id: np.ndarray
    observation_id: np.ndarray
    action_id: np.ndarray
    next_observation_id: np.ndarray
    fingerprint: EncoderFingerprint

    def __len__(self) -> int:
        return self.turns.num_rows

    @cached_property
    def session_starts(self) -> np.ndarray:
        """Row of each session's first turn, and the number of rows at the end: int64 [S + 1]."""
        sessions = self.turns["session_id"].to_numpy(zero_copy_only=False)
        changes = np.flatnonzero(sessions[1:] != sessions[:-1]) + 1
        return np.concatenate([[0], changes, [len(sessions)]]).astype(np.int64)

    @cached_property
    def session_policy(self) -> np.ndarray:
        """Policy that acted in each session (its first turn's): object [S]."""
        return self.turns["policy"].to_numpy(zero_copy_only=False)[self.session_starts[:-1]]

    def without_policies(self, names: Sequence[str]) -> "EmbeddedTurns":
        """The sessions of all other policies.

        Raises:
            PreplayError: When a name is not among the logged policies, or nothing would be left.
        """
        known = np.unique(self.session_policy)
        if missing := [name for name in names if name not in known]:
            raise PreplayError(
                f"the logs hold no policy {missing[0]!r}.", fix=f"Logged policies: {', '.join(known)}."
            )
        keep = ~np.isin(self.session_policy, list(names))
        if not keep.any():
            raise PreplayError("no session is left when these policies are left out.")
        return self.select_sessions(keep) if names else self

    def select_sessions(self, keep: np.ndarray) -> "EmbeddedTurns":
        """The sessions whose entry in ``keep`` (bool [S]) is true; the bank stays whole."""
        rows = np.flatnonzero(np.repeat(keep, np.diff(self.session_starts)))
        return EmbeddedTurns(
            self.turns.take(rows),
            self.bank,
            self.task_id[rows],
            self.observation_id[rows],
            self.action_id[rows],
            self.next_observation_id[rows],
            self.fingerprint,
        )
