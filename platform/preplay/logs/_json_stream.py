"""JSON read piece by piece: lines of a JSONL file, and the items of one large array or object.

Values are kept exactly as logged: ``"007"`` stays a string, integers keep every digit.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

from preplay.logs._files import Line, LogFile
from preplay.logs._records import Quarantined, excerpt

_CHUNK = 1 << 20
_SPACE = re.compile(r"[\s]*")
_DECODER = json.JSONDecoder()
_fast = msgspec.json.Decoder().decode


class JsonRecord(NamedTuple):
    """One JSON value, the key it stood under (objects only), its line and its raw text."""

    value: Any
    line: int
    raw: bytes
    key: str | None = None


def decode_json(data: bytes) -> Any:
    """Parse one JSON value from UTF-8 bytes; ValueError says in plain words what is wrong."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"not UTF-8 (byte 0x{data[error.start]:02x} at {error.start + 1})") from None
    try:
        return _fast(text)
    except (msgspec.DecodeError, RecursionError):
        pass  # what the fast parser refuses (NaN, halves of characters) may still be read by the lenient one
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("JSON is nested too deeply") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON ({error.msg} at column {error.colno})") from None


def json_lines(file: LogFile) -> Iterator[JsonRecord | Quarantined]:
    """One record per line; a line that is no JSON object is quarantined."""
    return (json_line(file, line) for line in file.lines())


def json_line(file: LogFile, line: Line) -> JsonRecord | Quarantined:
    """The record of a line."""
    try:
        value = decode_json(line.data)
    except ValueError as error:
        return Quarantined(file.where(line.number), "record", str(error), excerpt(line.data))
    if isinstance(value, dict):
        return JsonRecord(value, line.number, line.data)
    reason = f"a JSON {type(value).__name__}, not an object"
    return Quarantined(file.where(line.number), "record", reason, excerpt(line.data))


def plain_objects(lines: Sequence[bytes]) -> list[dict[str, Any]] | None:
    """The objects of some lines that are all plain JSON objects with the same keys; None where they are not."""
    try:
        records = list(map(_fast, lines))
    except (msgspec.DecodeError, RecursionError):
        return None
    if set(map(type, records)) != {dict} or len(set(map(tuple, records))) != 1:
        return None
    return records


def json_items(file: LogFile) -> Iterator[JsonRecord | Quarantined]:
    """The items of the file's one top-level array, or the values of its one top-level object.

    Memory holds one item at a time. A file that breaks off yields what stands before the break, then
    the rest as quarantined.
    """
    with file.open() as stream:
        window = _Window(stream)
        opening = window.peek()
        if opening not in ("[", "{"):
            yield Quarantined(file.where(1), "record", "no JSON array or object", excerpt(window.rest()))
            return
        window.skip(1)
        closing = "]" if opening == "[" else "}"
        while (char := window.peek()) != closing:
            if char == ",":
                window.skip(1)
                window.peek()
            line = window.line
            try:
                key = window.key() if opening == "{" else None
                value, raw = window.value()
            except (ValueError, RecursionError) as error:
                reason = f"not JSON from here on ({error})"
                yield Quarantined(file.where(line), "record", reason, excerpt(window.rest()))
                return
            yield JsonRecord(value, line, raw.encode("utf-8", "surrogatepass"), key)
        window.skip(1)
        if window.peek():
            reason = f"content after the closing {closing!r}"
            yield Quarantined(file.where(window.line), "record", reason, excerpt(window.rest()))


def json_document(file: LogFile) -> Iterator[JsonRecord | Quarantined]:
    """The whole file as one JSON value."""
    with file.open() as stream:
        data = stream.read()
    try:
        yield JsonRecord(decode_json(data), 1, data)
    except ValueError as error:
        yield Quarantined(file.where(1), "record", str(error), excerpt(data))


def json_records(file: LogFile) -> Iterator[JsonRecord | Quarantined]:
    """Records however they are laid out: one per line, items of one array, or one document per file."""
    kind = peek_head(file.head()).kind if file.end is None else "jsonl"
    if kind == "array":
        return json_items(file)
    return json_document(file) if kind == "object" else json_lines(file)


class _Window:
    """A sliding text window over a byte stream, grown until the next JSON value fits."""

    def __init__(self, stream: Any):
        self._stream, self._text, self._at, self._done = stream, "", 0, False
        self._tail = b""
        self.line = 1

    def peek(self) -> str:
        """The next character that is not white space; '' at the end."""
        while True:
            end = _SPACE.match(self._text, self._at).end()  # type: ignore[union-attr]
            self._advance(end)
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._grow():
                return ""

    def skip(self, count: int) -> None:
        self._advance(self._at + count)

    def key(self) -> str:
        """The next key of an object and its colon."""
        self.peek()
        key, _ = self.value()
        if not isinstance(key, str) or self.peek() != ":":
            raise ValueError("a key is missing")
        self.skip(1)
        return key

    def value(self) -> tuple[Any, str]:
        """The next value and its text."""
        if not self.peek():
            raise ValueError("the file ends too early")
        while True:
            try:
                value, end = _DECODER.raw_decode(self._text, self._at)
            except json.JSONDecodeError as error:
                if not (self._may_be_cut(error) and self._grow()):
                    raise ValueError(f"{error.msg} in line {self.line}") from None
                continue
            if end == len(self._text) and self._grow():  # a number may go on
                continue
            raw = self._text[self._at : end]
            self._advance(end)
            return value, raw

    def rest(self) -> str:
        return self._text[self._at : self._at + 200]

    def _may_be_cut(self, error: json.JSONDecodeError) -> bool:
        """Whether the error can come from the window's end rather than from the text."""
        return error.msg.startswith("Unterminated") or error.pos >= len(self._text) - 16

    def _advance(self, end: int) -> None:
        self.line += self._text.count("\n", self._at, end)
        self._at = end

    def _grow(self) -> bool:
        """Read as much again as is held (at least one chunk), so that a long value costs linear time."""
        if self._done:
            return False
        data = self._stream.read(max(_CHUNK, len(self._text) - self._at))
        self._done = not data
        data = self._tail + data
        cut = len(data) if self._done else _last_whole_character(data)
        self._text = self._text[self._at :] + data[:cut].decode("utf-8", "backslashreplace")
        self._tail, self._at = data[cut:], 0
        return not self._done


def _last_whole_character(data: bytes) -> int:
    """Where to cut so that no UTF-8 character is split."""
    for back in range(1, min(4, len(data)) + 1):
        byte = data[-back]
        if byte & 0xC0 != 0x80:
            length = 1 if byte < 0x80 else 2 if byte >> 5 == 6 else 3 if byte >> 4 == 14 else 4
            return len(data) - back if length > back else len(data)
    return len(data)


@dataclass(frozen=True, slots=True)
class Peek:
    """What the head of a file looks like: ``jsonl``, ``array``, ``object``, ``text`` or ``binary``.

    ``first`` is the first record that could be parsed (a line, an item or the whole object), else None.
    """

    kind: str
    first: Any
    text: str


@lru_cache(maxsize=64)
def peek_head(head: bytes) -> Peek:
    """Look at the head of a file the way every reader needs it."""
    text = head.decode("utf-8", "replace")
    start = text.lstrip()[:1]
    if b"\0" in head[:4096] and start not in ("{", "["):
        return Peek("binary", None, "")
    if start == "[":
        return Peek("array", _first_value(text, text.index("[") + 1), text)
    if start != "{":
        return Peek("text", None, text)
    lines = [line for line in text.splitlines() if line.strip()]
    parsed = [v for v in map(_try_json, lines[:20]) if isinstance(v, dict)]
    if parsed and (len(lines) == 1 or len(parsed) > 1 or isinstance(_try_json(lines[0]), dict)):
        return Peek("jsonl", parsed[0], text)
    whole = _first_value(text, 0)
    return Peek("object", whole, text)


def _try_json(line: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _first_value(text: str, at: int) -> Any:
    try:
        return _DECODER.raw_decode(text, _SPACE.match(text, at).end())[0]  # type: ignore[union-attr]
    except (ValueError, RecursionError):
        return None
