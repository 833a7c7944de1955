"""A policy cloned from its sessions by retrieval: it does what the target did in the most similar states.

Retrieval keeps real, varied actions; regressing the mean action gives texts that nobody ever said.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from preplay.embedding import EmbeddedTurns, EncoderFingerprint
from preplay.errors import PreplayError
from preplay.policies._clone_space import CloneSpace, StateBlocks, choose_space, neighbours
from preplay.policies._protocol import ActionBatch, AgentState

MIN_SESSIONS = 4


class TextEncoder(Protocol):
    """What a clone needs of an encoder to place new states."""

    @property
    def fingerprint(self) -> EncoderFingerprint:
        """Which encoder this is."""
        ...

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Unit-norm embeddings, float32 [B, D]."""
        ...


@dataclass(frozen=True)
class CloneData:
    """What a clone remembers of R turns of its target.

    Args:
        actions: The R logged actions.
        blocks: Where the states lie, [R] rows.
        action_embedding: float32 [R, D].
        session: The session each turn belongs to.
    """

    actions: list[str]
    blocks: StateBlocks
    action_embedding: np.ndarray
    session: list[str]


class ClonedPolicy:
    """Draws one of the logged actions of the nearest logged states, nearer ones more often.

    It has no ``log_prob``: a retrieved clone puts all probability on texts that were logged.

    Args:
        name: Name in reports.
        data: The target's turns.
        space: What makes states similar, chosen on held-out sessions.
        encoder: Embeds the texts of new states; must be the one the turns were embedded with.
        fingerprint: Of the encoder the turns were embedded with.
    """

    reads = 1
    deterministic = False

    def __init__(
        self,
        name: str,
        data: CloneData,
        space: CloneSpace,
        encoder: TextEncoder,
        fingerprint: EncoderFingerprint,
    ):
        if encoder.fingerprint != fingerprint:
            raise PreplayError(
                f"the clone {name!r} was fitted with encoder {fingerprint.model} "
                f"({fingerprint.weights_sha256[:12]}), not with {encoder.fingerprint.model} "
                f"({encoder.fingerprint.weights_sha256[:12]}).",
                fix="Use the same encoder, or fit the clone again.",
            )
        self.name, self.data, self.space, self.fingerprint = name, data, space, fingerprint
        self._encoder = encoder
        self._points = space.points(data.blocks)
        self._bank = {"": np.zeros(fingerprint.dimension, dtype=np.float32)}

    def act(self, states: Sequence[AgentState], rng: np.random.Generator) -> ActionBatch:
        """One logged action per state, from one draw per state."""
        draws = rng.random((len(states), 1))
        rows, weights = neighbours(self.space.points(self._blocks(states)), self._points, self.space)
        picked = (draws >= weights.cumsum(axis=1)[:, :-1]).sum(axis=1)
        chosen = rows[np.arange(len(states)), picked]
        return ActionBatch([self.data.actions[row] for row in chosen.tolist()])

    def _blocks(self, states: Sequence[AgentState]) -> StateBlocks:
        previous = [state.history[-1][1] if state.history else "" for state in states]
        return StateBlocks(
            self._embed([state.observation for state in states]),
            self._embed(previous),
            self._embed([state.task or "" for state in states]),
            np.array([state.turn for state in states], dtype=np.float32),
        )

    def _embed(self, texts: list[str]) -> np.ndarray:
        new = [text for text in dict.fromkeys(texts) if text not in self._bank]
        if new:
            self._bank.update(zip(new, self._encoder.encode(new), strict=True))
        return np.stack([self._bank[text] for text in texts])


def fit_clone(turns: EmbeddedTurns, encoder: TextEncoder, name: str) -> ClonedPolicy:
    """Clone the policy that acted in ``turns``; rewards are not looked at.

    What makes states similar (weights of turn, previous action and predicted action; temperature) is chosen by
    how well it predicts the kind of action on held-out sessions.
    """
    sessions = len(turns.session_starts) - 1
    if sessions < MIN_SESSIONS:
        raise PreplayError(
            f"a policy cannot be cloned from {sessions} sessions.",
            fix=f"Give at least {MIN_SESSIONS} of its sessions.",
        )
    data = _clone_data(turns)
    number = np.repeat(np.arange(sessions), np.diff(turns.session_starts))
    space = choose_space(data.blocks, data.action_embedding, number)
    return ClonedPolicy(name, data, space, encoder, turns.fingerprint)


def _clone_data(turns: EmbeddedTurns) -> CloneData:
    starts, bank = turns.session_starts, turns.bank.embeddings
    previous = np.zeros((len(turns), bank.shape[1]), dtype=np.float32)
    previous[1:] = bank[turns.action_id[:-1]]
    previous[starts[:-1]] = 0.0
    task = np.where(turns.task_id[:, None] >= 0, bank[turns.task_id], 0.0).astype(np.float32)
    turn = turns.turns["turn"].to_numpy().astype(np.float32)
    return CloneData(
        turns.turns["action"].to_pylist(),
        StateBlocks(bank[turns.observation_id], previous, task, turn),
        bank[turns.action_id],
        turns.turns["session_id"].to_pylist(),
    )
