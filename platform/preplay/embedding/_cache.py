"""Embeddings on disk, found by the hash of their text. Later runs, and other datasets, share them.

``<root>/<fingerprint>/`` is a :class:`~preplay.shards.ShardFolder` of rows (key, embedding).
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from preplay.embedding._types import EncoderFingerprint
from preplay.shards import ShardFolder


def text_key(text: str) -> bytes:
    """Key of a text: its SHA-256."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


@dataclass
class Lookup:
    """What the cache held: row of each known key in ``embeddings`` (float32 [M, D])."""

    rows: dict[bytes, int]
    embeddings: np.ndarray
    damaged: list[str] = field(default_factory=list)


class EmbeddingCache:
    """The embeddings of one encoder under a root folder (local or any fsspec URI all actors can reach)."""

    def __init__(self, root: str, fingerprint: EncoderFingerprint):
        name = hashlib.sha256(fingerprint.model_dump_json().encode()).hexdigest()[:16]
        self._folder = ShardFolder(f"{root.rstrip('/')}/{name}")
        self._dimension = fingerprint.dimension

    def add(self, texts: Sequence[str], embeddings: np.ndarray) -> str:
        """Write one shard with these rows (float32 [n, D]) and return its path."""
        keys = pa.array([text_key(text) for text in texts], pa.binary(32))
        table = pa.table({"key": keys, "embedding": _vectors(embeddings)})
        return self._folder.write(_block_name(texts), table, compression="none")

    def find_block(self, texts: Sequence[str]) -> str | None:
        """Path of the shard that holds exactly these texts in this order, if there is one."""
        return self._folder.find(_block_name(texts))

    def find(self, texts: Sequence[str] | None, shards: Sequence[str] | None = None) -> Lookup:
        """What the intact shards (by default all) know about these texts (None: everything they know)."""
        wanted = (
            None if texts is None else pa.array(sorted({text_key(text) for text in texts}), pa.binary(32))
        )
        found = Lookup({}, np.empty((0, self._dimension), np.float32))
        parts = [found.embeddings]
        for path in self._all_shards() if shards is None else shards:
            table = self._folder.read(path)
            if table is None:
                found.damaged.append(path)
                continue
            hits = table if wanted is None else table.filter(pc.field("key").isin(wanted))
            parts.append(_matrix(hits["embedding"], self._dimension)[_take_new(hits["key"], found.rows)])
        found.embeddings = np.concatenate(parts)
        return found

    def _all_shards(self) -> list[str]:
        return [path for paths in self._folder.list().values() for path in paths]


def _block_name(texts: Sequence[str]) -> str:
    digest = hashlib.sha256()
    for text in texts:
        digest.update(text_key(text))
    return f"embeddings-{digest.hexdigest()[:32]}"


def _vectors(embeddings: np.ndarray) -> pa.FixedSizeListArray:
    flat = np.ascontiguousarray(embeddings, np.float32).reshape(-1)
    return pa.FixedSizeListArray.from_arrays(pa.array(flat), embeddings.shape[1])


def _take_new(keys: pa.ChunkedArray, rows: dict[bytes, int]) -> list[int]:
    """Give each key that is not in ``rows`` the next row; the positions of these keys."""
    new = []
    for position, key in enumerate(keys.to_pylist()):
        if key not in rows:
            rows[key] = len(rows)
            new.append(position)
    return new


def _matrix(column: pa.ChunkedArray, dimension: int) -> np.ndarray:
    flat = column.combine_chunks().flatten().to_numpy(zero_copy_only=False)
    return flat.reshape(-1, dimension)
