"""Flat logs: one record per turn, as JSONL, CSV or Parquet; preplay's own turns among them."""

from collections.abc import Iterator
from hashlib import sha256
from operator import itemgetter
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from preplay.logs._files import Line, LineBlock, LogFile
from preplay.logs._json_stream import json_line, peek_head, plain_objects
from preplay.logs._records import Quarantined, RawTable, RawTurn, excerpt, hash_record
from preplay.logs._registry import Item, Sniff, register
from preplay.logs.readers._csv_rows import Bad, csv_rows, header_columns
from preplay.logs.readers._fields import ALIASES, plan_fields, split_fields
from preplay.logs.readers._parquet_rows import parquet_rows

_FIELDS = "session_id, turn_id, state, action, reward, next_state; optional: " + ", ".join(
    k for k in ALIASES if k not in {"session_id", "turn", "state", "action", "reward", "next_state"}
)
_QUIRKS = (
    "other column names (episode_id, step, obs, done, propensity …); states that carry the whole history; "
    "numbers as text; missing next_state; unsorted, repeated and missing turns"
)


def _missing(columns: set[str]) -> list[str]:
    """Which of the needed fields no column stands for."""
    needed = (("session_id",), ("state", "observation"), ("action",))
    return [group[0] for group in needed if not any(set(ALIASES[f]) & columns for f in group)]


def _sniff_columns(columns: set[str], what: str) -> Sniff:
    missing = _missing(columns)
    if missing:
        return Sniff(0, f"{what} without {', '.join(missing)}")
    return Sniff(0.8 if set(ALIASES["reward"]) & columns else 0.6, f"{what} with session, state and action")


def _raw_turn(record: dict[str, Any], source: str, raw: bytes | dict[str, Any]) -> RawTurn:
    values, left = split_fields(record)
    session_id = values.pop("session_id", None)
    if "record_hash" in left and "source" in left and "observation" in values:  # preplay's own export
        source, digest = str(left.pop("source")), str(left.pop("record_hash"))
        return RawTurn(session_id, values, source, digest, left)
    return RawTurn(session_id, values, source, hash_record(raw), left)


def _table(records: list[dict[str, Any]], lines: LineBlock, file: LogFile) -> RawTable | None:
    """Records with the same keys as columns; None for preplay's own export, whose sources are in the records, and
    for records that hold hardly anything."""
    known, left = plan_fields(tuple(records[0]))
    if ("record_hash" in left and "source" in left) or len(known) < 2:
        return None
    rows = map(itemgetter(*(name for _, name in known)), records)
    values = dict(zip((field for field, _ in known), map(list, zip(*rows, strict=True)), strict=True))
    return RawTable(
        values.pop("session_id", [None] * len(records)),
        values,
        [f"{file.path}:{number}" for number in lines.numbers],
        [sha256(line).hexdigest() for line in lines.data],
        [{name: record[name] for name in left} for record in records] if left else [{}] * len(records),
    )


@register
class TurnsJsonl:
    """One JSON object per line."""

    name = "turns-jsonl"
    description = "One JSON object per turn and line"
    example = (
        '{"session_id": "s1", "turn_id": 0, "state": "Hello", "action": "Hi, how can I help?", '
        '"reward": 0.0, "next_state": "My order is late"}'
    )
    fields = _FIELDS
    quirks = _QUIRKS
    splittable = True

    def sniff(self, path: str, head: bytes) -> Sniff:
        peek = peek_head(head)
        if peek.kind != "jsonl":
            return Sniff(0, f"not JSON lines ({peek.kind})")
        return _sniff_columns(set(peek.first), "JSON lines")

    def read(self, file: LogFile) -> Iterator[Item]:
        return (self._item(file, line) for line in file.lines())

    def read_blocks(self, file: LogFile) -> Iterator[Item | RawTable]:
        for lines in file.line_blocks():
            records = plain_objects(lines.data)
            table = _table(records, lines, file) if records else None
            yield from [table] if table else (self._item(file, line) for line in lines.lines())

    def _item(self, file: LogFile, line: Line) -> Item:
        record = json_line(file, line)
        if isinstance(record, Quarantined):
            return record
        return _raw_turn(record.value, file.where(record.line), record.raw)


@register
class TurnsCsv:
    """A CSV or TSV table with a header line."""

    name = "turns-csv"
    description = "One CSV or TSV row per turn, with a header"
    example = "session_id,turn_id,state,action,reward,next_state\ns1,0,Hello,Hi,0.0,My order is late"
    fields = _FIELDS
    quirks = _QUIRKS + "; line breaks inside quotes; empty cells are missing values"
    splittable = False

    def sniff(self, path: str, head: bytes) -> Sniff:
        peek = peek_head(head)
        if peek.kind != "text":
            return Sniff(0, f"not a table ({peek.kind})")
        return _sniff_columns(set(header_columns(peek.text)), "a table")

    def read(self, file: LogFile) -> Iterator[Item]:
        for number, row in csv_rows(file):
            source = file.where(number)
            if isinstance(row, Bad):
                yield Quarantined(source, "record", row.reason, excerpt(row.raw))
                continue
            cells, raw = row
            turn = _raw_turn(cells, source, raw)
            turn.values["reward"] = _as_number(turn.values.get("reward"))
            yield turn


def _as_number(cell: Any) -> Any:
    """A cell's number, since every cell of a table is text; what is no number stays for the check to refuse."""
    try:
        return None if cell is None else float(cell)
    except ValueError:
        return cell


@register
class TurnsParquet:
    """A Parquet table."""

    name = "turns-parquet"
    description = "One Parquet row per turn"
    example = "columns session_id, turn_id, state, action, reward, next_state"
    fields = _FIELDS
    quirks = _QUIRKS
    splittable = False

    def sniff(self, path: str, head: bytes) -> Sniff:
        if not head.startswith(b"PAR1"):
            return Sniff(0, "no Parquet file")
        try:
            with LogFile(path).open() as stream:
                columns = set(pq.read_schema(stream).names)
        except (pa.ArrowInvalid, OSError) as error:
            return Sniff(0.1, f"a damaged Parquet file ({str(error).splitlines()[0]})")
        return _sniff_columns(columns, "a Parquet file")

    def read(self, file: LogFile) -> Iterator[Item]:
        number = 0
        try:
            for number, row in parquet_rows(file):
                yield _raw_turn(row, file.where(number), row)
        except (pa.ArrowInvalid, OSError) as error:
            reason = f"damaged from here on ({str(error).splitlines()[0]})"
            yield Quarantined(file.where(number + 1), "file", reason)
