"""Large line files cut into ranges of whole lines, named by content: the unit of parallel and repeated reading."""

import hashlib
import json
import math
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from itertools import pairwise, takewhile
from pathlib import Path
from typing import Any, cast

import fsspec

from preplay.artifacts import atomic_write
from preplay.logs._files import LogFile
from preplay.logs._json_stream import peek_head
from preplay.logs._registry import reader

SEGMENT_BYTES = 32 << 20
_PIECE = 1 << 20
_PACKED = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"\xff\xfe", b"\xfe\xff", b"\xef\xbb\xbf")
_VERSION = "2"
_INDEX = "index.json"


@dataclass(frozen=True)
class Segment:
    """A byte range of a file (``end`` None: the whole file), its first line and the SHA-256 of its bytes.

    ``closed`` says that it ends with an end of line: what is appended later does not change it.
    """

    path: str
    format: str
    start: int
    end: int | None
    first_line: int
    lines: int
    sha256: str
    closed: bool

    @property
    def key(self) -> str:
        """Names the result of reading it: path and place (they are in every row's source) and content."""
        return hashlib.sha256(json.dumps([_VERSION, asdict(self)]).encode()).hexdigest()[:32]

    @property
    def file(self) -> LogFile:
        """The range to read."""
        return LogFile(self.path, self.start, self.end, self.first_line)


def cut(files: Sequence[tuple[LogFile, str]], index: dict[str, list[Segment]]) -> list[Segment]:
    """The segments of all files; earlier segments of ``index`` are kept where the bytes still are the same."""
    with ThreadPoolExecutor(os.cpu_count()) as of_files, ThreadPoolExecutor(os.cpu_count()) as of_ranges:
        parts = of_files.map(
            lambda entry: _cut_file(entry[0], entry[1], index.get(entry[0].path, []), of_ranges), files
        )
        return [segment for part in parts for segment in part]


def _cut_file(file: LogFile, format: str, earlier: list[Segment], pool: ThreadPoolExecutor) -> list[Segment]:
    with cast(Any, fsspec.open(file.path, "rb")) as stream:
        magic = stream.read(4)
        if (
            not reader(format).splittable
            or magic.startswith(_PACKED)
            or peek_head(file.head()).kind != "jsonl"
        ):
            return [Segment(file.path, format, 0, None, 1, 0, _digest(file.path).sha256, False)]
        size = stream.seek(0, os.SEEK_END)
        kept = _unchanged(file.path, format, earlier, size, pool)
        last = kept[-1] if kept else Segment(file.path, format, 0, 0, 1, 0, "", True)
        bounds = list(_bounds(stream, last.end or 0, size))
    line = last.first_line + last.lines
    for (start, end), found in zip(bounds, _digests(file.path, bounds, pool), strict=True):
        kept.append(Segment(file.path, format, start, end, line, found.lines, found.sha256, found.closed))
        line += found.lines
    return kept


def _unchanged(
    path: str, format: str, earlier: list[Segment], size: int, pool: ThreadPoolExecutor
) -> list[Segment]:
    """The first of the earlier segments, as far as they follow each other and the file still holds their bytes."""
    chain: list[Segment] = []
    for segment in earlier:
        follows = segment.format == format and segment.start == (chain[-1].end if chain else 0)
        if not (follows and segment.closed and (segment.end or 0) <= size):
            break
        chain.append(segment)
    found = _digests(path, [(s.start, s.end or 0) for s in chain], pool)
    same = sum(1 for _ in takewhile(bool, (s.sha256 == d.sha256 for s, d in zip(chain, found, strict=True))))
    return chain[:same]


def _bounds(stream: Any, start: int, size: int) -> Iterator[tuple[int, int]]:
    """Ranges of whole lines; a last line without an end stands apart."""
    while start < size:
        stream.seek(start + SEGMENT_BYTES)
        stream.readline()
        end = min(stream.tell(), size)
        whole = end if end < size or _byte(stream, size - 1) == b"\n" else _last_line(stream, start, size)
        yield from ((a, b) for a, b in pairwise((start, whole, end)) if a < b)
        start = end


def _byte(stream: Any, place: int) -> bytes:
    stream.seek(place)
    return stream.read(1)


def _last_line(stream: Any, start: int, size: int) -> int:
    """Where the line that has no end begins."""
    stream.seek(start)
    return start + stream.read(size - start).rfind(b"\n") + 1


@dataclass(frozen=True, slots=True)
class _Digest:
    """SHA-256 of a byte range, its ends of lines, and whether it closes with one."""

    sha256: str
    lines: int
    closed: bool


def _digests(path: str, ranges: Sequence[tuple[int, int]], pool: ThreadPoolExecutor) -> Iterator[_Digest]:
    return pool.map(lambda bounds: _digest(path, *bounds), ranges)


def _digest(path: str, start: int = 0, end: float = math.inf) -> _Digest:
    digest, lines, closed = hashlib.sha256(), 0, False
    with cast(Any, fsspec.open(path, "rb")) as stream:
        stream.seek(start)
        while start < end and (piece := stream.read(int(min(_PIECE, end - start)))):
            digest.update(piece)
            lines, closed = lines + piece.count(b"\n"), piece.endswith(b"\n")
            start += len(piece)
    return _Digest(digest.hexdigest(), lines, closed)


def read_index(cache: Path) -> dict[str, list[Segment]]:
    """The segments of the last ingest into this cache, per file."""
    file = cache / _INDEX
    if not file.exists():
        return {}
    found: dict[str, list[Segment]] = {}
    for entry in json.loads(file.read_text()):
        found.setdefault(entry["path"], []).append(Segment(**entry))
    return found


def write_index(cache: Path, segments: Sequence[Segment]) -> None:
    """Remember the segments for the next ingest."""
    atomic_write(cache / _INDEX, json.dumps([asdict(s) for s in segments]).encode())
