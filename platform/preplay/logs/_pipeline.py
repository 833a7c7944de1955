"""Ingest in stages, over many processes when the logs are large: read segments, assemble parts of whole sessions.

Memory is bounded by the size of a segment and of a part, whatever the size of the logs. What is read is left on
disk under names that depend on content only.
"""

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby, pairwise
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from preplay.logs._assemble import assemble_steps, sort_turns
from preplay.logs._card_stats import session_stats, turn_stats
from preplay.logs._check import STEP_SCHEMA
from preplay.logs._checks import check_turns
from preplay.logs._outcomes import join_outcomes, read_outcomes
from preplay.logs._parts import SLOTS, plan_parts, read_slots, scatter
from preplay.logs._records import canonical_json
from preplay.logs._redact import redact
from preplay.logs._segments import Segment
from preplay.logs._spill import SUMMARY, Summary, read_rows, spill

PART_BYTES = 64 << 20
_SCATTERED = "scattered.npy"
TURNS = "turns.parquet"
"""The turns of a dataset that is one part."""
INLINE_BYTES = 64 << 20
"""Logs up to this size are read in this process: starting Ray would take longer."""


@dataclass(frozen=True)
class Options:
    """What is done to the turns after they are assembled."""

    outcomes: str | None = None
    outcome_key: str = "session_id"
    redact: bool = False
    seed: int = 0


@dataclass(frozen=True)
class Part:
    """What came out of one part of the sessions; its turns and statistics are files beside each other."""

    number: int
    turns: int
    notes: dict[str, int]
    records: dict[str, int]
    used_outcomes: list[str]


class SegmentWorker:
    """Stage 1: reads one segment into the folder of steps."""

    def __init__(self, folder: str):
        self._folder = Path(folder)

    def __call__(self, item: pa.Table) -> pa.Table:
        segment = Segment(**json.loads(item["job"][0].as_py()))
        return pa.table({"answer": [spill(segment, self._folder).model_dump_json()]})


class ScatterWorker:
    """Between the stages: sorts a segment's steps of scattered sessions into slots."""

    def __init__(self, folder: str, work: str):
        self._folder, self._work = Path(folder), Path(work)

    def __call__(self, item: pa.Table) -> pa.Table:
        key = json.loads(item["job"][0].as_py())["key"]
        scattered = np.load(self._work / _SCATTERED, allow_pickle=False)
        scatter(self._folder, _summary(self._folder, key), scattered, self._work / f"{key}.arrow")
        return pa.table({"answer": [key]})


class PartWorker:
    """Stage 2: assembles the sessions of a part into ``turns-N.parquet`` and its statistics."""

    def __init__(self, folder: str, output: str, work: str, options: dict[str, Any]):
        self._folder, self._output, self._work = Path(folder), Path(output), Path(work)
        self._options = Options(**options)
        path = self._options.outcomes
        self._outcomes = read_outcomes(path, self._options.outcome_key) if path else None

    def __call__(self, item: pa.Table) -> pa.Table:
        job = json.loads(item["job"][0].as_py())
        part = self._assemble(self._steps(job), job["number"], self._output / job["name"])
        return pa.table({"answer": [json.dumps(asdict(part))]})

    def _steps(self, job: dict[str, Any]) -> pa.Table:
        if "slots" in job:
            return read_slots([self._work / f"{key}.arrow" for key in job["keys"]], range(*job["slots"]))
        batches = []
        for key, stretches in groupby(job["stretches"], key=itemgetter(0)):
            rows = [(start, end) for _, start, end in stretches]
            batches += read_rows(self._folder, _summary(self._folder, key), rows)
        return pa.Table.from_batches(batches, STEP_SCHEMA)

    def _assemble(self, steps: pa.Table, number: int, target: Path) -> Part:
        result = assemble_steps(steps)
        turns, used = result.turns, set()
        if target.name == TURNS:
            turns = sort_turns(turns)  # readers sort the turns of several files themselves
        if self._outcomes:
            joined = join_outcomes(turns, self._outcomes)
            turns, used = joined.turns, joined.used
            result.quarantined += joined.conflicts
            result.notes["outcomes_joined"] += joined.sessions
            result.notes["sessions_without_reward"] -= min(
                joined.sessions, result.notes["sessions_without_reward"]
            )
        result.notes.update(check_turns(turns))
        if self._options.redact:
            turns = redact(turns)
        write_turns(turns, target)
        pq.write_table(turn_stats(turns), self._work / f"turn-stats-{number}.parquet")
        pq.write_table(
            session_stats(turns, self._options.seed), self._work / f"session-stats-{number}.parquet"
        )
        lines = "".join(canonical_json(q.to_json()) + "\n" for q in result.quarantined)
        (self._work / f"quarantine-{number}.jsonl").write_text(lines, encoding="utf-8")
        return Part(number, turns.num_rows, dict(result.notes), dict(result.records), sorted(used))


def read_segments(segments: Sequence[Segment], folder: Path, *, parallel: bool) -> list[Summary]:
    """Stage 1 over all segments; what an earlier run left in the folder is not read again."""
    done = [s for s in segments if (folder / s.key / SUMMARY).exists()]
    missing = [s for s in segments if s not in done] if done else list(segments)
    _run(SegmentWorker, [str(folder)], [asdict(s) for s in missing], "reading logs", parallel)
    return [spill(s, folder) for s in segments]


def assemble_parts(
    segments: Sequence[Segment], folder: Path, output: Path, work: Path, options: Options, *, parallel: bool
) -> list[Part]:
    """Stage 2: every session whole, in as many parts as the texts need."""
    keys = [s.key for s in segments]
    plan = plan_parts(folder, keys, PART_BYTES)
    jobs: list[dict] = [
        {"stretches": [(keys[i], start, end) for i, start, end in part]} for part in plan.parts
    ]
    if plan.holders:
        holders = [keys[i] for i in plan.holders]
        np.save(work / _SCATTERED, plan.scattered, allow_pickle=False)
        scattering = [{"key": key} for key in holders]
        _run(ScatterWorker, [str(folder), str(work)], scattering, "sorting sessions", parallel)
        count = min(SLOTS, max(1, plan.scattered_bytes // PART_BYTES))
        edges = [i * SLOTS // count for i in range(count + 1)]
        jobs += [{"keys": holders, "slots": slots} for slots in pairwise(edges)]
    for i, job in enumerate(jobs):
        name = TURNS if len(jobs) == 1 else f"turns-{i:05d}-of-{len(jobs):05d}.parquet"
        job |= {"number": i, "name": name}
    arguments = [str(folder), str(output), str(work), asdict(options)]
    answers = _run(PartWorker, arguments, jobs, "assembling sessions", parallel)
    return sorted((Part(**json.loads(a)) for a in answers), key=lambda p: p.number)


def _summary(folder: Path, key: str) -> Summary:
    return Summary.model_validate_json((folder / key / SUMMARY).read_bytes())


def _run(
    worker: Callable[..., Any], arguments: list[Any], jobs: list[dict], title: str, parallel: bool
) -> list[str]:
    items = [pa.table({"job": [json.dumps(job)]}) for job in jobs]
    if parallel and len(items) > 1:
        from preplay.stage import run_stage  # Ray: seconds that a small log does not need

        answers = list(run_stage(worker, arguments, items, title=title))
    else:
        local = worker(*arguments) if items else None
        answers = [local(item) for item in items] if local else []
    return [text for answer in answers for text in answer["answer"].to_pylist()]


def write_turns(turns: pa.Table, path: Path) -> None:
    """Write turns as compressed Parquet in row groups that a laptop can hold."""
    pq.write_table(turns, path, compression="zstd", compression_level=1, row_group_size=1 << 15)


def totals(parts: Sequence[Part], summaries: Sequence[Summary]) -> tuple[Counter[str], Counter[str]]:
    """Remarks and fates of records of all segments and parts."""
    notes = sum((Counter(x.notes) for x in [*summaries, *parts]), Counter())
    records = sum((Counter(x.records) for x in [*summaries, *parts]), Counter())
    return notes, records
