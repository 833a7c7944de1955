"""Log files: found by path, folder, glob or URI, decompressed by content, read as numbered lines."""

import codecs
import gzip
import io
import os
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import FileIO
from typing import Any, NamedTuple, cast

import fsspec
import zstandard

from preplay.errors import PreplayError

BROKEN_STREAM = (OSError, EOFError, zlib.error, zstandard.ZstdError)
"""What reading a damaged or cut file raises."""
HEAD_BYTES = 1 << 16
_BLOCK_LINES, _BLOCK_BYTES = 1 << 12, 1 << 22
_LONGEST_FIRST_LINE = 1 << 26
_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
_BOMS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))


class Line(NamedTuple):
    """One line without its end-of-line characters; ``number`` counts from 1."""

    number: int
    data: bytes


@dataclass(frozen=True, slots=True)
class LineBlock:
    """Many lines without their end-of-line characters, none of them blank, and their numbers."""

    numbers: Sequence[int]
    data: list[bytes]

    @classmethod
    def of(cls, lines: Sequence[Line]) -> "LineBlock":
        """These lines."""
        return cls([line.number for line in lines], [line.data for line in lines])

    def lines(self) -> Iterator[Line]:
        """One after the other."""
        return map(Line, self.numbers, self.data)


@dataclass(frozen=True, slots=True)
class LogFile:
    """One log file, or the byte range ``[start, end)`` of one that is not compressed.

    ``first_line`` is the number of the first line of the range.
    """

    path: str
    start: int = 0
    end: int | None = None
    first_line: int = 1

    @property
    def name(self) -> str:
        """File name without folders, compression suffix and extension."""
        return self.parts[-1].removesuffix(".gz").removesuffix(".zst").rsplit(".", 1)[0]

    @property
    def parts(self) -> list[str]:
        """The folders and the file name."""
        return self.path.replace("\\", "/").split("/")

    def where(self, key: int | str) -> str:
        """``file:line`` for a line number, ``file#key`` for a key inside the file."""
        return f"{self.path}:{key}" if isinstance(key, int) else f"{self.path}#{key}"

    def open(self) -> io.BufferedReader:
        """The decompressed content from the start of the file, without a byte-order mark, as UTF-8."""
        remote = "://" in self.path
        stream = _buffered(cast(Any, fsspec.open(self.path, "rb")).open() if remote else FileIO(self.path))
        magic = stream.peek(4)
        if magic.startswith(_GZIP):
            stream = _buffered(_Unpacked(gzip.GzipFile(fileobj=stream)))
        elif magic.startswith(_ZSTD):
            reader = zstandard.ZstdDecompressor().stream_reader(stream, read_across_frames=True)
            stream = _buffered(_Unpacked(reader))
        return _without_bom(stream)

    def lines(self) -> Iterator[Line]:
        """The lines that are not blank. A file that breaks off raises OSError or EOFError at that point."""
        with self.open() as stream:
            if self.start:
                stream.seek(self.start)
            position, number = (self.start or stream.tell()) if self.end else 0, self.first_line
            for data in stream:
                if self.end is not None and position >= self.end:
                    return
                position += len(data)
                line = data.rstrip(b"\r\n")
                if line.strip():
                    yield Line(number, line)
                number += 1

    def line_blocks(self) -> Iterator[LineBlock]:
        """The lines that are not blank, many at a time; what breaks off is raised after the lines before it."""
        if self.end is not None:
            yield from self._range_blocks(self.end)
            return
        block: list[Line] = []
        try:
            for line in self.lines():
                block.append(line)
                if len(block) == _BLOCK_LINES:
                    yield LineBlock.of(block)
                    block = []
        except BROKEN_STREAM:
            yield LineBlock.of(block)
            raise
        if block:
            yield LineBlock.of(block)

    def _range_blocks(self, end: int) -> Iterator[LineBlock]:
        position, number = self.start, self.first_line
        with self.open() as stream:
            stream.seek(position)
            while chunk := stream.read(min(_BLOCK_BYTES, end - position)):
                if position + len(chunk) < end:
                    chunk += stream.readline()  # a range ends where a line ends
                lines = chunk.split(b"\n")
                if not lines[-1]:
                    lines.pop()
                if b"\r" in chunk:
                    lines = [line.rstrip(b"\r") for line in lines]
                yield _without_blank(range(number, number + len(lines)), lines)
                position, number = position + len(chunk), number + len(lines)

    def head(self) -> bytes:
        """The first bytes, at least up to the end of the first line."""
        with self.open() as stream:
            head = stream.read(HEAD_BYTES)
            while b"\n" not in head.strip() and len(head) < _LONGEST_FIRST_LINE:
                more = stream.read(len(head) or 1)
                if not more:
                    break
                head += more
            return head or stream.read(1)  # a file broken from its start says so now


def _without_blank(numbers: range, data: list[bytes]) -> LineBlock:
    if all(data) and not any(map(bytes.isspace, data)):
        return LineBlock(numbers, data)
    kept = [i for i, line in enumerate(data) if line.strip()]
    return LineBlock([numbers[i] for i in kept], [data[i] for i in kept])


def find_files(paths: Sequence[str]) -> tuple[list[LogFile], set[str]]:
    """The files that paths, folders, globs and URIs stand for, and which of them were named outright.

    Raises:
        PreplayError: When a path stands for no file at all.
    """
    found: dict[str, LogFile] = {}
    named: set[str] = set()
    for path in map(str, paths):
        names = _expand(path)
        if not names:
            raise PreplayError("no such file or folder.", where=path, fix="Check the path or the pattern.")
        if names == [path]:
            named.add(path)
        found |= {name: LogFile(name) for name in names}
    return [found[name] for name in sorted(found)], named


def _expand(path: str) -> list[str]:
    fs, root = fsspec.core.url_to_fs(path)
    scheme = f"{path.split('://')[0]}://" if "://" in path else ""
    if any(c in path for c in "*?["):
        matches = [m for m in fs.glob(root) if fs.isfile(m)]
    elif fs.isdir(root):
        matches = [m for m in fs.find(root) if not _hidden(m[len(root) :])]
    else:
        return [path] if fs.exists(root) else []
    if scheme:
        return [scheme + m.removeprefix(scheme) for m in matches]
    return [m if os.path.isabs(path) else os.path.relpath(m) for m in matches]


def _hidden(relative: str) -> bool:
    return any(part.startswith(".") for part in relative.split("/") if part)


def _buffered(raw: Any) -> io.BufferedReader:
    return io.BufferedReader(raw, 1 << 20)


def _without_bom(stream: io.BufferedReader) -> io.BufferedReader:
    for bom, encoding in _BOMS:
        if stream.peek(4).startswith(bom):
            stream.read(len(bom))
            if encoding == "utf-8":
                return stream
            return _buffered(_TextAsBytes(io.TextIOWrapper(stream, encoding, errors="replace", newline="")))
    return stream


class _Unpacked(io.RawIOBase):
    """A decompressor that hands out all it has before it reports that the file breaks off."""

    def __init__(self, reader: Any):
        self._reader = reader
        self._error: Exception | None = None

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if self._error:
            raise self._error
        try:
            data = self._reader.read1(len(buffer))
        except BROKEN_STREAM as error:
            self._error, data = error, b""
        buffer[: len(data)] = data
        return len(data)


class _TextAsBytes(io.RawIOBase):
    """A text stream read as UTF-8 bytes."""

    def __init__(self, text: io.TextIOWrapper):
        self._text, self._left = text, b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._left:
            self._left = self._text.read(1 << 16).encode("utf-8", "replace")
        count = min(len(buffer), len(self._left))
        buffer[:count] = self._left[:count]
        self._left = self._left[count:]
        return count
