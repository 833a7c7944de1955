"""Embeddings on disk, found by the hash of their text. Later runs, and other datasets, share them.

``<root>/<fingerprint>/shard-<sha256 of the file>.parquet`` holds rows (key, embedding). A shard is written
aside and renamed, and its name is its checksum: a half-written or damaged one is never read as good.
"""

import hashlib
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field

import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from fsspec.implementations.local import LocalFileSystem

from preplay.artifacts import atomic_write
from preplay.embedding._types import EncoderFingerprint

log = logging.getLogger(__name__)
_PREFIX, _SUFFIX = "shard-", ".parquet"


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
        self._fs, path = fsspec.core.url_to_fs(root)
        self.folder = f"{path.rstrip('/')}/{name}"
        self._dimension = fingerprint.dimension
        self._fs.makedirs(self.folder, exist_ok=True)

    def add(self, texts: Sequence[str], embeddings: np.ndarray) -> str:
        """Write one shard with these rows (float32 [n, D]) and return its path."""
        keys = pa.array([text_key(text) for text in texts], pa.binary(32))
        values = pa.FixedSizeListArray.from_arrays(pa.array(embeddings.reshape(-1)), self._dimension)
        sink = pa.BufferOutputStream()
        pq.write_table(pa.table({"key": keys, "embedding": values}), sink, compression="none")
        data = sink.getvalue().to_pybytes()
        path = f"{self.folder}/{_PREFIX}{hashlib.sha256(data).hexdigest()}{_SUFFIX}"
        self._write(path, data)
        return path

    def find(self, texts: Sequence[str] | None, shards: Sequence[str] | None = None) -> Lookup:
        """What the intact shards (by default all) know about these texts (None: everything they know)."""
        wanted = (
            None if texts is None else pa.array(sorted({text_key(text) for text in texts}), pa.binary(32))
        )
        found = Lookup({}, np.empty((0, self._dimension), np.float32))
        parts = [found.embeddings]
        for path in self._shards() if shards is None else shards:
            table = self._read(path)
            if table is None:
                found.damaged.append(path)
                continue
            hits = table if wanted is None else table.filter(pc.field("key").isin(wanted))
            parts.append(_matrix(hits["embedding"], self._dimension)[_take_new(hits["key"], found.rows)])
        found.embeddings = np.concatenate(parts)
        return found

    def _shards(self) -> list[str]:
        self._fs.invalidate_cache(self.folder)
        names = (str(path).rsplit("/", 1)[-1] for path in self._fs.ls(self.folder, detail=False))
        return sorted(f"{self.folder}/{n}" for n in names if n.startswith(_PREFIX) and n.endswith(_SUFFIX))

    def _read(self, path: str) -> pa.Table | None:
        """The shard, or None (and the file set aside) when its content is not what its name says."""
        data = self._fs.cat_file(path)
        if hashlib.sha256(data).hexdigest() == path.rsplit(_PREFIX, 1)[-1].removesuffix(_SUFFIX):
            return pq.read_table(pa.BufferReader(data))
        log.warning("%s: damaged shard of the embedding cache; its texts are embedded again.", path)
        self._fs.mv(path, f"{path}.damaged")
        return None

    def _write(self, path: str, data: bytes) -> None:
        if isinstance(self._fs, LocalFileSystem):
            atomic_write(path, data)
        else:
            self._fs.pipe_file(path, data)  # object stores show a file only once it is whole


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
