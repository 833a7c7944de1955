"""Steps on disk between reading and assembling: one batch per slot of session ids, so that a session is whole."""

import os
import shutil
import tempfile
import zlib
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import TextIO

import numpy as np
import pyarrow as pa
from pydantic import BaseModel

from preplay.logs._check import STEP_SCHEMA
from preplay.logs._parse import Parsed, parse_into
from preplay.logs._records import canonical_json
from preplay.logs._registry import reader
from preplay.logs._segments import Segment

SLOTS = 256
SUMMARY, QUARANTINE = "summary.json", "quarantine.jsonl"
_ROWS, _PIECE_BYTES = 4096, 48 << 20


class Piece(BaseModel):
    """An Arrow file whose i-th batch holds the steps of slot ``slots[i]``."""

    file: str
    slots: list[int]


class Summary(BaseModel):
    """What came out of one segment."""

    key: str
    pieces: list[Piece]
    steps: int
    quarantined: int
    notes: dict[str, int]
    records: dict[str, int]


def spill(segment: Segment, folder: Path) -> Summary:
    """Read a segment into ``folder/<key>``, or return what an earlier reading left there."""
    target = folder / segment.key
    if (target / SUMMARY).exists():
        return Summary.model_validate_json((target / SUMMARY).read_bytes())
    stage = Path(tempfile.mkdtemp(prefix=".", dir=folder))
    try:
        summary = _spill_into(segment, stage)
        (stage / SUMMARY).write_text(summary.model_dump_json())
        os.rename(stage, target)
    finally:
        shutil.rmtree(stage, ignore_errors=True)
    return summary


def _spill_into(segment: Segment, stage: Path) -> Summary:
    parsed = Parsed()
    pieces: list[Piece] = []
    tables: list[pa.Table] = []
    steps = quarantined = 0
    with (stage / QUARANTINE).open("w", encoding="utf-8") as lost:
        for _ in parse_into(reader(segment.format), segment.file, parsed):
            if sum(map(len, parsed.tables)) + len(parsed.quarantined) < _ROWS:
                continue
            quarantined += _drain(parsed, lost)
            tables.append(parsed.take_steps())
            if sum(t.nbytes for t in tables) > _PIECE_BYTES:
                pieces.append(_write_piece(tables, stage, len(pieces)))
                steps, tables = steps + sum(t.num_rows for t in tables), []
        quarantined += _drain(parsed, lost)
    tables.append(parsed.take_steps())
    steps += sum(t.num_rows for t in tables)
    pieces.append(_write_piece(tables, stage, len(pieces)))
    return Summary(
        key=segment.key,
        pieces=pieces,
        steps=steps,
        quarantined=quarantined,
        notes=dict(parsed.notes),
        records=dict(parsed.records),
    )


def _drain(parsed: Parsed, stream: TextIO) -> int:
    lines = [canonical_json(q.to_json()) + "\n" for q in parsed.quarantined]
    stream.writelines(lines)
    parsed.quarantined = []
    return len(lines)


def _write_piece(tables: list[pa.Table], stage: Path, number: int) -> Piece:
    table = pa.concat_tables(tables).combine_chunks()
    slots = slots_of(table["session_id"])
    order = np.argsort(slots, kind="stable")
    table, slots = table.take(pa.array(order)).combine_chunks(), slots[order]
    name = f"steps-{number:05d}.arrow"
    found, starts = np.unique(slots, return_index=True)
    options = pa.ipc.IpcWriteOptions(compression="lz4", use_threads=False)
    with pa.ipc.new_file(stage / name, STEP_SCHEMA, options=options) as writer:
        for start, end in pairwise([*starts, len(slots)]):
            writer.write_batch(table.slice(start, end - start).to_batches()[0])
    return Piece(file=name, slots=found.tolist())


def slots_of(ids: pa.ChunkedArray) -> np.ndarray:
    """The slot of each session id: a hash of the id alone, the same on every machine and run."""
    encoded = ids.combine_chunks().dictionary_encode()
    slot = np.array([zlib.crc32(i.encode()) % SLOTS for i in encoded.dictionary.to_pylist()], dtype=np.int64)
    return slot[encoded.indices.to_numpy()] if len(slot) else np.zeros(0, np.int64)


def read_slots(folder: Path, summaries: Iterable[Summary], slots: range) -> pa.Table:
    """The steps of some slots from all segments, in the order of the segments."""
    batches = []
    for summary in summaries:
        for piece in summary.pieces:
            wanted = [i for i, slot in enumerate(piece.slots) if slot in slots]
            if wanted:
                with pa.memory_map(str(folder / summary.key / piece.file)) as source:
                    opened = pa.ipc.open_file(source)
                    batches += [opened.get_batch(i) for i in wanted]
    return pa.Table.from_batches(batches, STEP_SCHEMA)
