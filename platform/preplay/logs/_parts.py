"""Which steps are assembled together: whole sessions, in the order of the logs wherever that keeps them whole.

Most logs write one session after the other. A session whose steps stand together (also across the border of two
segments) belongs to a part that is a stretch of the log; nothing is moved. The steps of *scattered* sessions are
sorted into slots by a hash of the session's id first. Parts depend on the logs alone, not on how these were cut into
segments.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa

from preplay.logs._check import STEP_SCHEMA
from preplay.logs._spill import Summary, read_rows, read_runs, steps_file

SLOTS = 256


@dataclass(frozen=True)
class Plan:
    """Parts as lists of (segment, first row, row after the last), and what is scattered.

    ``scattered`` are the hashes of session ids, ``holders`` the segments in which they stand.
    """

    parts: list[list[tuple[int, int, int]]]
    scattered: np.ndarray
    scattered_bytes: int
    holders: list[int]


def plan_parts(folder: Path, keys: Sequence[str], part_bytes: int) -> Plan:
    """The parts of all segments, each of about ``part_bytes`` of text."""
    tables = [read_runs(folder, key) for key in keys]
    session, rows, size = (
        np.concatenate([t[name].to_numpy() for t in tables]) for name in ("session", "rows", "bytes")
    )
    segment = np.repeat(np.arange(len(keys)), [t.num_rows for t in tables])
    first = np.append(True, session[1:] != session[:-1])[: len(session)]
    names, visits = np.unique(session[first], return_counts=True)
    scattered = names[visits > 1]
    apart = np.isin(session, scattered)
    parts = _stretches(segment, rows, _part_of(first, np.where(apart, 0, size), part_bytes), apart)
    return Plan(parts, scattered, int(size[apart].sum()), np.unique(segment[apart]).tolist())


def _part_of(first: np.ndarray, size: np.ndarray, part_bytes: int) -> np.ndarray:
    """The part of each run; runs of one session, which follow each other, share it."""
    visit = np.cumsum(first) - 1
    before = np.cumsum(size) - size
    return (before[first] // part_bytes)[visit]


def _stretches(
    segment: np.ndarray, rows: np.ndarray, part: np.ndarray, apart: np.ndarray
) -> list[list[tuple[int, int, int]]]:
    end = np.cumsum(rows)
    start = end - rows
    held, heads = np.unique(segment, return_index=True)
    base = dict(zip(held.tolist(), start[heads].tolist(), strict=True))
    breaks = np.flatnonzero(np.diff(segment) | np.diff(part) | np.diff(apart)) + 1
    parts: dict[int, list[tuple[int, int, int]]] = {}
    for a, b in pairwise([0, *breaks.tolist(), len(rows)]):
        if b > a and not apart[a]:
            at = int(segment[a])
            parts.setdefault(int(part[a]), []).append(
                (at, int(start[a]) - base[at], int(end[b - 1]) - base[at])
            )
    return list(parts.values())


def scatter(folder: Path, summary: Summary, scattered: np.ndarray, target: Path) -> None:
    """Write a segment's steps of scattered sessions to ``target``, one batch per slot (some are empty)."""
    runs = read_runs(folder, summary.key)
    session = np.repeat(runs["session"].to_numpy(), runs["rows"].to_numpy())
    rows = np.flatnonzero(np.isin(session, scattered))
    slots = (session[rows] % SLOTS).astype(np.int64)
    steps = pa.Table.from_batches(read_rows(folder, summary, [(0, len(session))]), STEP_SCHEMA)
    steps = steps.take(pa.array(rows[np.argsort(slots, kind="stable")])).combine_chunks()
    edges = np.concatenate([[0], np.cumsum(np.bincount(slots, minlength=SLOTS))])
    whole = steps.to_batches()[0]
    with steps_file(target) as writer:
        for start, end in pairwise(edges.tolist()):
            writer.write_batch(whole.slice(start, end - start))


def read_slots(files: Sequence[Path], slots: range) -> pa.Table:
    """The steps of some slots, in the order of the files."""
    batches = []
    for file in files:
        with pa.memory_map(str(file)) as source:
            opened = pa.ipc.open_file(source)
            batches += [opened.get_batch(slot) for slot in slots]
    return pa.Table.from_batches(batches, STEP_SCHEMA)
