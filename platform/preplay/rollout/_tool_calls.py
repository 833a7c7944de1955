"""What imagined actions are made of, for world models that condition on tool calls."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from preplay.actions import SessionReader


@dataclass(frozen=True)
class ToolCalls:
    """How the tool calls of imagined sessions are read.

    Args:
        reader: Of the logs that the initial states come from, with the world models' columns.
        row: int64 [n] logged turn of each initial state.
        key: Stands for the logs in the names of finished blocks.
    """

    reader: SessionReader
    row: np.ndarray
    key: str


class Calls:
    """The tool calls of B running sessions; what the policy's own logged sessions showed is not known to it.

    Args:
        calls: How they are read.
        initial: int64 [B] initial state of each session.
        policy: Name of the policy that acts.
        observations: The world model's texts.
    """

    def __init__(self, calls: ToolCalls, initial: np.ndarray, policy: str, observations: Sequence[str]):
        self._reader, self._without = calls.reader, (policy,)
        self._past = calls.reader.begin(calls.row[initial])
        self._seen = calls.reader.observations(observations)
        self._acted = np.zeros(len(initial), np.int64)

    def act(self, texts: np.ndarray, action: np.ndarray) -> np.ndarray:
        """Features float64 [B, ·] of actions int64 [B] into ``texts``."""
        distinct, place = np.unique(action, return_inverse=True)
        self._acted = self._reader.actions(texts[distinct].tolist())[place]
        return self._reader.features(self._past, self._acted, without=self._without)

    def follow(self, text_id: np.ndarray) -> None:
        """The observations int64 [B] into the world model's texts that followed."""
        self._past = self._past.then(self._acted, self._seen[text_id])

    def keep(self, rows: np.ndarray) -> None:
        """Go on with the given sessions alone."""
        self._past = self._past.select(rows)
