"""States and candidates to arrays: structure, evidence of the harness, and pooled embeddings of the parts.

Legend: N states, M candidates of all pools together, F features, S state features, T distinct texts, D embedding.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from preplay.critics._chunks import ChunkBank, ChunkConfig, embed_chunks, split_text
from preplay.critics._features import DENSE, pool_features
from preplay.embedding import CachedEncoder, EncoderConfig, EncoderFingerprint
from preplay.errors import PreplayError

FEATURE_VERSION = 3
"""Raised whenever a feature changes its meaning; critics of another version are refused."""

_POOL_COLUMNS = [DENSE.index(name) for name in ("agreement", "similarity", "same_as_state")]


@dataclass(frozen=True)
class DecisionState:
    """What the agent knows when it decides: its task, the latest observation, and the turn (from 0)."""

    task: str
    observation: str
    turn: int = 0

    @property
    def text(self) -> str:
        """Both texts."""
        return f"{self.task}\n{self.observation}"


@dataclass(frozen=True)
class EncodedPools:
    """N pools. Candidates of pool i are the rows ``offsets[i]:offsets[i + 1]`` of ``features``.

    Args:
        state: float32 [N, S]: turn, sizes, then means and maxima over the pool of agreement and evidence.
        features: float32 [M, F].
        offsets: int64 [N + 1].
        text: Row in ``chunks`` of each candidate, int64 [M].
        chunks: Embedded parts of the distinct candidates.
        state_embedding: float32 [N, D], task plus observation; D is 0 without an encoder.
    """

    state: np.ndarray
    features: np.ndarray
    offsets: np.ndarray
    text: np.ndarray
    chunks: ChunkBank
    state_embedding: np.ndarray

    @property
    def owner(self) -> np.ndarray:
        """Pool of each candidate, int64 [M]."""
        return np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))

    def select(self, rows: np.ndarray) -> tuple["EncodedPools", np.ndarray]:
        """These pools, and the new row of each old candidate (-1: gone), int64 [M]."""
        spans = [np.arange(int(self.offsets[r]), int(self.offsets[r + 1])) for r in rows]
        kept = np.concatenate(spans) if spans else np.zeros(0, np.int64)
        moved = np.full(len(self.features), -1)
        moved[kept] = np.arange(len(kept))
        offsets = np.concatenate([[0], np.cumsum([len(span) for span in spans])]).astype(np.int64)
        features, text = self.features[kept], self.text[kept]
        return EncodedPools(
            self.state[rows], features, offsets, text, self.chunks, self.state_embedding[rows]
        ), moved

    def concatenate(self, other: "EncodedPools") -> "EncodedPools":
        """Both, one after the other."""
        return EncodedPools(
            np.concatenate([self.state, other.state]),
            np.concatenate([self.features, other.features]),
            np.concatenate([self.offsets, other.offsets[1:] + self.offsets[-1]]),
            np.concatenate([self.text, other.text + len(self.chunks.exists)]),
            self.chunks.concatenate(other.chunks),
            np.concatenate([self.state_embedding, other.state_embedding]),
        )


@dataclass
class ActionEncoder:
    """Turns states and pools into arrays.

    Args:
        horizon: Turns that a session may have; the share that has passed is part of the state.
        hashed: Hashed structure features.
        evidence: Names of what the harness measures about each candidate before it chooses (grounding in a knowledge
            base, public tests in a sandbox, ...); pools come with these numbers or with none.
        chunks: How long actions are cut.
        encoder: Embeds the parts; None uses structure alone.
    """

    horizon: int = 10
    hashed: int = 64
    evidence: tuple[str, ...] = ()
    chunks: ChunkConfig = field(default_factory=ChunkConfig)
    encoder: CachedEncoder | None = None

    def settings(self) -> dict[str, Any]:
        """What an equal encoder is made from; ``sentence`` says how the sentence encoder is loaded."""
        own = {"horizon": self.horizon, "hashed": self.hashed, "evidence": list(self.evidence)}
        sentence = self.encoder.config.model_dump(mode="json") if self.encoder else None
        return own | {"chunks": asdict(self.chunks), "sentence": sentence}

    @classmethod
    def from_settings(
        cls,
        settings: dict[str, Any],
        encoder: CachedEncoder | None = None,
        fingerprint: EncoderFingerprint | None = None,
    ) -> "ActionEncoder":
        """The inverse of :meth:`settings`; without ``encoder`` the one of this fingerprint is loaded when needed."""
        if encoder is None and fingerprint and settings["sentence"]:
            sentence = EncoderConfig.model_validate(settings["sentence"] | {"device": "auto"})
            encoder = CachedEncoder(sentence, expect=fingerprint)
        chunks, evidence = ChunkConfig(**settings["chunks"]), tuple(settings["evidence"])
        return cls(settings["horizon"], settings["hashed"], evidence, chunks, encoder)

    @property
    def fingerprint(self) -> EncoderFingerprint | None:
        """Of the sentence encoder, where there is one."""
        return self.encoder.fingerprint if self.encoder else None

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the F features of a candidate."""
        return (
            *DENSE,
            *(f"hash_{i}" for i in range(self.hashed)),
            *(f"evidence_{name}" for name in self.evidence),
        )

    def encode(
        self,
        states: Sequence[DecisionState],
        pools: Sequence[Sequence[str]],
        evidence: Sequence[Sequence[Sequence[float]] | None] | None = None,
    ) -> EncodedPools:
        """Encode N states with their pools (none of them empty) and, per candidate, its evidence."""
        if empty := [i for i, pool in enumerate(pools) if not len(pool)]:
            raise PreplayError(
                f"the candidate list of decision {empty[0]} is empty.", fix="Offer at least one action."
            )
        evidence = evidence or [None] * len(pools)
        features = [
            self._candidates(state, pool, own)
            for state, pool, own in zip(states, pools, evidence, strict=True)
        ]
        texts = list(dict.fromkeys(text for pool in pools for text in pool))
        rows = {text: i for i, text in enumerate(texts)}
        return EncodedPools(
            state=np.stack([self._state(s, f) for s, f in zip(states, features, strict=True)]),
            features=np.concatenate(features),
            offsets=np.concatenate([[0], np.cumsum([len(pool) for pool in pools])]).astype(np.int64),
            text=np.array([rows[text] for pool in pools for text in pool], np.int64),
            chunks=embed_chunks(texts, self.encoder, self.chunks),
            state_embedding=self._embed_states(states),
        )

    def texts(self, states: Sequence[DecisionState], pools: Sequence[Sequence[str]]) -> list[str]:
        """The distinct texts that :meth:`encode` embeds."""
        parts = (part for pool in pools for text in pool for part in split_text(text, self.chunks.characters))
        return list(dict.fromkeys([*parts, *(s.task for s in states), *(s.observation for s in states)]))

    def _candidates(
        self, state: DecisionState, pool: Sequence[str], evidence: Sequence[Sequence[float]] | None
    ) -> np.ndarray:
        features = pool_features(pool, state.text, self.hashed)
        given = np.zeros((len(pool), len(self.evidence)), np.float32)
        if evidence is not None and self.evidence:
            values = np.asarray(evidence, np.float32).reshape(-1, len(self.evidence))
            given[: len(values)] = np.nan_to_num(values, posinf=0.0, neginf=0.0)
        return np.concatenate([features, given], axis=1)

    def _state(self, state: DecisionState, features: np.ndarray) -> np.ndarray:
        """Turn and sizes, then mean and maximum over the pool of agreement and evidence.

        No more of the pool than that: with few tasks, a richer state is learned by heart and misleads on new ones.
        """
        sizes = [np.log1p(len(state.task)), np.log1p(len(state.observation)), np.log(len(features))]
        shared = np.concatenate([features[:, _POOL_COLUMNS], features[:, len(DENSE) + self.hashed :]], axis=1)
        own = np.array([state.turn / self.horizon, *sizes], np.float32)
        return np.concatenate([own, shared.mean(axis=0), shared.max(axis=0)]).astype(np.float32)

    def _embed_states(self, states: Sequence[DecisionState]) -> np.ndarray:
        """Two texts, two vectors, one sum: a task that is always the same must not dilute what was just seen."""
        if self.encoder is None:
            return np.zeros((len(states), 0), np.float32)
        return self.encoder.encode([s.task for s in states]) + self.encoder.encode(
            [s.observation for s in states]
        )
