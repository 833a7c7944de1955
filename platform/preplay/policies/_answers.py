"""Answers of an endpoint on disk, found by the hash of the request: a paid answer is never asked for twice."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from preplay.shards import ShardFolder

Request = Mapping[str, Any]


class StoredAnswers:
    """Answers by request, shared by all processes that reach the folder.

    Args:
        uri: Folder, local or any fsspec URI; None keeps answers in memory only.
    """

    def __init__(self, uri: str | None):
        self._folder = ShardFolder(uri) if uri else None
        self._known: dict[str, str] = {}
        self._read: set[str] = set()

    def __contains__(self, key: str) -> bool:
        return key in self._known

    def __getitem__(self, key: str) -> str:
        return self._known[key]

    def refresh(self) -> None:
        """Read what other processes have stored since."""
        if self._folder is None:
            return
        for path in (p for paths in self._folder.list().values() for p in paths):
            if path not in self._read and (table := self._folder.read(path)) is not None:
                self._known |= dict(zip(table["key"].to_pylist(), table["answer"].to_pylist(), strict=True))
            self._read.add(path)

    def add(self, answers: Mapping[str, str]) -> None:
        """Keep these answers by key."""
        self._known |= answers
        if self._folder is None or not answers:
            return
        table = pa.table({"key": list(answers), "answer": list(answers.values())})
        self._read.add(self._folder.write("answers", table))


def request_key(url: str, request: Request) -> str:
    """Hash of all that an answer depends on."""
    return hashlib.sha256(json.dumps([url, request], sort_keys=True).encode()).hexdigest()
