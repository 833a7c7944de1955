"""Large line files cut into ranges of whole lines, named by content: the unit of parallel and repeated reading."""

import hashlib
import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

import fsspec

from preplay.artifacts import atomic_write
from preplay.logs._files import LogFile
from preplay.logs._json_stream import peek_head
from preplay.logs._registry import reader

SEGMENT_BYTES = 32 << 20
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
    with ThreadPoolExecutor(2) as pool:
        parts = pool.map(
            lambda entry: list(_cut_file(entry[0], entry[1], index.get(entry[0].path, []))), files
        )
        return [segment for part in parts for segment in part]


def _cut_file(file: LogFile, format: str, earlier: list[Segment]) -> Iterator[Segment]:
    with cast(Any, fsspec.open(file.path, "rb")) as stream:
        magic = stream.read(4)
        stream.seek(0)
        if (
            not reader(format).splittable
            or magic.startswith(_PACKED)
            or peek_head(file.head()).kind != "jsonl"
        ):
            yield _whole(file.path, format, stream)
            return
        last = Segment(file.path, format, 0, 0, 1, 0, "", True)
        for segment in earlier:
            if not (segment.closed and segment.format == format and segment.start == last.end):
                break
            if hashlib.sha256(stream.read((segment.end or 0) - segment.start)).hexdigest() != segment.sha256:
                break
            last = segment
            yield segment
        stream.seek(last.end)
        yield from _ranges(stream, last)


def _whole(path: str, format: str, stream: Any) -> Segment:
    digest = hashlib.sha256()
    while chunk := stream.read(1 << 20):
        digest.update(chunk)
    return Segment(path, format, 0, None, 1, 0, digest.hexdigest(), False)


def _ranges(stream: Any, last: Segment) -> Iterator[Segment]:
    """Ranges after ``last``; each is closed at an end of line, a tail without one stands alone."""
    start, line = last.end or 0, last.first_line + last.lines
    while chunk := stream.read(SEGMENT_BYTES):
        for body in _whole_lines(chunk, stream.readline()):
            digest = hashlib.sha256()
            for piece in body:
                digest.update(piece)
            end, lines = start + sum(map(len, body)), sum(piece.count(b"\n") for piece in body)
            closed = body[-1].endswith(b"\n")
            yield Segment(last.path, last.format, start, end, line, lines, digest.hexdigest(), closed)
            start, line = end, line + lines


def _whole_lines(chunk: bytes, rest: bytes) -> Iterator[list[bytes]]:
    """A chunk and the rest of its last line; a last line without an end stands apart."""
    last = rest or chunk
    if last.endswith(b"\n"):
        yield [chunk, rest] if rest else [chunk]
        return
    cut = chunk.rfind(b"\n") + 1
    if cut:
        yield [chunk[:cut]]
    yield [chunk[cut:] + rest]


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
