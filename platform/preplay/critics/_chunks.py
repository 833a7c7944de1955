"""A long text in parts that keep together what belongs together, each with its embedding."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from preplay.embedding import CachedEncoder


@dataclass(frozen=True)
class ChunkConfig:
    """Parts of about ``characters``, at most ``parts`` of them per text: beyond that, neighbours are averaged."""

    characters: int = 600
    parts: int = 8


@dataclass(frozen=True)
class ChunkBank:
    """Distinct texts as parts: embeddings float32 [T, C, D] and which of them exist, bool [T, C]."""

    embeddings: np.ndarray
    exists: np.ndarray

    def concatenate(self, other: "ChunkBank") -> "ChunkBank":
        """Both, one after the other, as wide as the wider one."""
        parts = max(self.exists.shape[1], other.exists.shape[1])
        wide = [(_padded(bank.embeddings, parts), _padded(bank.exists, parts)) for bank in (self, other)]
        return ChunkBank(*(np.concatenate(pair) for pair in zip(*wide, strict=True)))


def split_text(text: str, characters: int) -> list[str]:
    """Cut at blank lines, else at lines, else anywhere; nothing is dropped."""
    pieces = [piece for line in text.splitlines(keepends=True) for piece in _slices(line, characters)]
    parts: list[str] = []
    for piece in pieces:
        if parts and len(parts[-1]) + len(piece) <= characters:
            parts[-1] += piece
        else:
            parts.append(piece)
    return parts or [text]


def embed_chunks(texts: Sequence[str], encoder: CachedEncoder | None, config: ChunkConfig) -> ChunkBank:
    """Embeddings of the parts of each text; without an encoder the bank has D = 0."""
    if encoder is None:
        return ChunkBank(np.zeros((len(texts), 1, 0), np.float32), np.ones((len(texts), 1), bool))
    parts = [split_text(text, config.characters) for text in texts]
    vectors = encoder.encode([part for group in parts for part in group])
    most = min(config.parts, max(map(len, parts), default=1))
    out = np.zeros((len(texts), most, vectors.shape[1]), np.float32)
    exists = np.zeros((len(texts), most), bool)
    start = 0
    for row, group in enumerate(parts):
        own = vectors[start : start + len(group)]
        start += len(group)
        pooled = [piece.mean(axis=0) for piece in np.array_split(own, min(len(own), most))]
        out[row, : len(pooled)] = pooled
        exists[row, : len(pooled)] = True
    return ChunkBank(out, exists)


def _padded(values: np.ndarray, parts: int) -> np.ndarray:
    missing = [(0, 0), (0, parts - values.shape[1]), *[(0, 0)] * (values.ndim - 2)]
    return np.pad(values, missing)


def _slices(line: str, characters: int) -> list[str]:
    return [line[i : i + characters] for i in range(0, len(line), characters)]
