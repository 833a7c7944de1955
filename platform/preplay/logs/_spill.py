"""Steps on disk between reading and assembling: one Arrow file per segment, in the order of the log."""

import gc
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import pyarrow as pa
from pydantic import BaseModel

from preplay.logs._check import STEP_SCHEMA
from preplay.logs._parse import Parsed, parse_into
from preplay.logs._records import canonical_json
from preplay.logs._registry import reader
from preplay.logs._segments import Segment

STEPS, RUNS = "steps.arrow", "runs.arrow"
SUMMARY, QUARANTINE = "summary.json", "quarantine.jsonl"
RUN_SCHEMA = pa.schema([("session", pa.uint64()), ("rows", pa.int64()), ("bytes", pa.int64())])
"""Consecutive steps of one session: a hash of its id, their number, and the length of their texts."""
_ROWS = 4096
_TEXTS = ("task", "state", "next_state", "action", "proposed_action", "extras")
_ROW_BYTES = 256


class Summary(BaseModel):
    """What came out of one segment; ``batches`` are the rows of each batch of its steps."""

    key: str
    batches: list[int]
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
        with _without_collector():
            summary = _spill_into(segment, stage)
        (stage / SUMMARY).write_text(summary.model_dump_json())
        os.rename(stage, target)
    finally:
        shutil.rmtree(stage, ignore_errors=True)
    return summary


@contextmanager
def _without_collector() -> Iterator[None]:
    """Records hold no cycles: looking for some among all that are being read takes a sixth of the time, in vain."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def _spill_into(segment: Segment, stage: Path) -> Summary:
    parsed = Parsed()
    batches: list[int] = []
    quarantined = 0
    with (
        (stage / QUARANTINE).open("w", encoding="utf-8") as lost,
        steps_file(stage / STEPS) as steps,
        pa.ipc.new_file(stage / RUNS, RUN_SCHEMA) as runs,
    ):
        for _ in _until_full(parsed, segment):
            quarantined += _drain(parsed, lost)
            for batch in parsed.take_steps().combine_chunks().to_batches():
                steps.write_batch(batch)
                runs.write_batch(runs_of(batch))
                batches.append(batch.num_rows)
    counts = {"notes": dict(parsed.notes), "records": dict(parsed.records)}
    return Summary(key=segment.key, batches=batches, quarantined=quarantined, **counts)


def _until_full(parsed: Parsed, segment: Segment) -> Iterator[None]:
    """Give way whenever enough rows have come together, and at the end."""
    for _ in parse_into(reader(segment.format), segment.file, parsed):
        if sum(map(len, parsed.tables)) + len(parsed.quarantined) >= _ROWS:
            yield
    yield


def steps_file(path: Path) -> Any:
    """A writer of steps."""
    options = pa.ipc.IpcWriteOptions(compression="lz4", use_threads=False)
    return pa.ipc.new_file(path, STEP_SCHEMA, options=options)


def _drain(parsed: Parsed, stream: TextIO) -> int:
    lines = [canonical_json(q.to_json()) + "\n" for q in parsed.quarantined]
    stream.writelines(lines)
    parsed.quarantined = []
    return len(lines)


def runs_of(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The runs of some steps (``RUN_SCHEMA``)."""
    ids = batch["session_id"].dictionary_encode()
    codes = ids.indices.to_numpy()
    starts = np.flatnonzero(np.append(True, codes[1:] != codes[:-1]))
    hashes = np.array([hash_id(name) for name in ids.dictionary.to_pylist()], np.uint64)
    sizes = np.add.reduceat(_text_bytes(batch), starts)
    rows = np.diff(np.append(starts, batch.num_rows))
    return pa.record_batch([hashes[codes[starts]], rows, sizes], schema=RUN_SCHEMA)


def hash_id(session_id: str) -> int:
    """64 bits of a hash of a session id, the same on every machine and run."""
    return int.from_bytes(blake2b(session_id.encode(), digest_size=8).digest(), "little")


def _text_bytes(batch: pa.RecordBatch) -> np.ndarray:
    total = np.full(batch.num_rows, _ROW_BYTES, np.int64)
    for name in _TEXTS:
        offsets = np.frombuffer(batch[name].buffers()[1], np.int32)[batch[name].offset :]
        total += np.diff(offsets[: batch.num_rows + 1])
    return total


def read_runs(folder: Path, key: str) -> pa.Table:
    """The runs of a segment."""
    with pa.memory_map(str(folder / key / RUNS)) as source:
        return pa.ipc.open_file(source).read_all()


def read_rows(folder: Path, summary: Summary, stretches: Iterable[tuple[int, int]]) -> list[pa.RecordBatch]:
    """The steps of a segment in the row ranges [start, end)."""
    edges = np.cumsum([0, *summary.batches])
    found = []
    with pa.memory_map(str(folder / summary.key / STEPS)) as source:
        opened = pa.ipc.open_file(source)
        last, batch = -1, None
        for start, end in stretches:
            for i in range(int(np.searchsorted(edges, start, "right")) - 1, len(summary.batches)):
                if edges[i] >= end:
                    break
                if batch is None or last != i:
                    last, batch = i, opened.get_batch(i)
                low, high = max(start - edges[i], 0), min(end, edges[i + 1]) - edges[i]
                found.append(batch.slice(low, high - low))
    return found
