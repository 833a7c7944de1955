"""A folder of Parquet files that many workers fill and any later run reads back, each file whole or absent.

A file is named ``<name>-<sha256 of its bytes>.parquet``, written aside and renamed. So a half-written, truncated
or altered file is never read as good: its content does not match its name.
"""

import hashlib
import logging

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
from fsspec.implementations.local import LocalFileSystem

from preplay.artifacts import atomic_write

log = logging.getLogger(__name__)
_SUFFIX = ".parquet"


class ShardFolder:
    """Checksummed Parquet files under a local folder, or any fsspec URI that all workers reach."""

    def __init__(self, uri: str):
        self._fs, path = fsspec.core.url_to_fs(uri)
        self.path = path.rstrip("/")
        self._fs.makedirs(self.path, exist_ok=True)

    def write(self, name: str, table: pa.Table, *, compression: str = "zstd") -> str:
        """Write one shard and return its path."""
        sink = pa.BufferOutputStream()
        pq.write_table(table, sink, compression=compression)
        data = sink.getvalue().to_pybytes()
        path = f"{self.path}/{name}-{hashlib.sha256(data).hexdigest()}{_SUFFIX}"
        if isinstance(self._fs, LocalFileSystem):
            atomic_write(path, data)
        else:
            self._fs.pipe_file(path, data)  # object stores show a file only once it is whole
        return path

    def find(self, name: str) -> str | None:
        """Path of an undamaged shard of this name, if there is one."""
        paths = sorted(str(path) for path in self._fs.glob(f"{self.path}/{name}-*{_SUFFIX}"))
        return next((path for path in paths if self.read(path) is not None), None)

    def list(self) -> dict[str, list[str]]:
        """Paths of the finished shards by name, both sorted."""
        self._fs.invalidate_cache(self.path)
        shards: dict[str, list[str]] = {}
        for path in sorted(str(p) for p in self._fs.ls(self.path, detail=False)):
            file = path.rsplit("/", 1)[-1]
            if file.endswith(_SUFFIX) and not file.startswith("."):  # hidden: left aside by a kill
                shards.setdefault(file.rpartition("-")[0], []).append(f"{self.path}/{file}")
        return shards

    def read(self, path: str) -> pa.Table | None:
        """The shard, or None (reported, and the file set aside) when it is damaged."""
        data = self._fs.cat_file(path)
        if hashlib.sha256(data).hexdigest() == path.removesuffix(_SUFFIX).rpartition("-")[2]:
            return pq.read_table(pa.BufferReader(data))
        log.warning("%s: the file is damaged (its content does not match its name) and is made again.", path)
        self._fs.mv(path, f"{path}.damaged")
        return None
