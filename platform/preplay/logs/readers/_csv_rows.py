"""Rows of a CSV file with their line numbers and raw bytes; a bad row does not end the file."""

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from preplay.logs._files import LogFile

csv.field_size_limit(2**31 - 1)


@dataclass(frozen=True, slots=True)
class Bad:
    """A row that cannot be read, and why."""

    reason: str
    raw: bytes


Row = tuple[dict[str, str], bytes]


def csv_rows(file: LogFile, escape: str | None = None) -> Iterator[tuple[int, Row | Bad]]:
    """Line number and either the filled cells by column with the row's bytes, or what is wrong."""
    with file.open() as stream:
        lines = _Lines(stream)
        try:
            header = next(lines, "").strip()
        except UnicodeDecodeError:
            yield 1, Bad("the header is not UTF-8", lines.taken())
            return
        columns = header_columns(header)
        lines.taken()
        rows = csv.reader(lines, delimiter=delimiter(header), escapechar=escape, strict=True)
        while True:
            first = lines.number + 1
            try:
                row = next(rows, None)
            except (csv.Error, UnicodeDecodeError) as error:
                yield first, Bad(f"not a CSV row ({error})", lines.taken())
                continue
            raw = lines.taken()
            if row is None:
                return
            if len(row) == len(columns):
                yield first, ({c: cell for c, cell in zip(columns, row, strict=True) if cell != ""}, raw)
            elif row:
                yield first, Bad(f"{len(row)} cells under {len(columns)} columns", raw)


def header_columns(line: str) -> list[str]:
    """The column names of a table's first line; none where it is no line of a table."""
    line = line.strip().split("\n", 1)[0].strip()
    try:
        return next(csv.reader([line], delimiter=delimiter(line)), [])
    except csv.Error:
        return []


def delimiter(header: str) -> str:
    """The delimiter that a header line uses most: comma, tab or semicolon."""
    return max(",\t;", key=header.count)


class _Lines:
    """Decoded lines that remember their number and what was taken since the last row."""

    def __init__(self, stream: Any):
        self._stream, self._taken, self.number = stream, io.BytesIO(), 0

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        data = next(self._stream)
        self.number += 1
        self._taken.write(data)
        return data.decode("utf-8")

    def taken(self) -> bytes:
        """The raw bytes since the last call."""
        data, self._taken = self._taken.getvalue(), io.BytesIO()
        return data
