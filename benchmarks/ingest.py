"""Throughput and memory of ``ingest`` on generated logs: 100 MB (debug) or 10 GB (full, under 4 GB of memory).

Compares one process and Ray's processes with two plain single-process parses of the same kind of file: ``json.loads``
per line alone, and json.loads → Arrow → Parquet. CPU seconds are those of the process (tree), so that the ratio per
core does not depend on what else the machine does; wall times do. The generated logs are removed at the end; they go
where TMPDIR says.
"""

import json
import random
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from pydoc_data.topics import topics

import psutil
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks._common import bench_main
from preplay.logs import ingest

SIZES = {"debug": 100_000_000, "full": 10_000_000_000}
SAMPLE = 100_000_000
"""Bytes that the plain parses read, each three times: the fastest counts."""
ALONE = 1_000_000_000
"""Bytes that one process ingests beside Ray's."""
GOALS = {
    "one process: per core / plain parse": ">= 0.7",
    "Ray: per core / plain parse": ">= 0.7",
    "Ray: wall / plain parse": ">= 1.6 on 2 idle cores",
    "Ray: wall / one process": ">= 1.6 on 2 idle cores",
    "Ray: GB resident": "< 4",
}
BATCH = 20_000
TEXTS = 20_000


@dataclass
class Usage:
    """Wall and CPU seconds, and the largest resident memory of the process and its children in GB."""

    wall: float
    cpu: float
    memory: float


def main() -> None:
    """Entry point."""
    bench_main(run, title="Ingest", goals=GOALS)


def run(preset: str) -> dict[str, float]:
    """Generate, measure, remove. Ray takes over above 64 MB, so the small log is for one process alone."""
    with tempfile.TemporaryDirectory() as folder:
        size, sample = SIZES[preset], Path(folder) / "sample.jsonl"
        generate(sample, min(size, SAMPLE))
        plain = {
            "json.loads": _fastest(lambda: plain_json(sample), sample),
            "plain parse": _fastest(lambda: plain_parquet(sample), sample),
        }
        metrics = _ingested("one process", Path(folder), min(size, ALONE), plain, parallel=False)
        if preset == "full":
            metrics |= _ingested("Ray", Path(folder), size, plain, parallel=True)
            metrics["Ray: wall / one process"] = (
                metrics["Ray: MB/s of wall"] / metrics["one process: MB/s of wall"]
            )
    return metrics


def _fastest(parse: Callable[[], object], sample: Path) -> Usage:
    """Wall and CPU seconds per byte."""
    best = min((measure(parse) for _ in range(3)), key=lambda use: use.cpu)
    size = sample.stat().st_size
    return Usage(best.wall / size, best.cpu / size, best.memory)


def _ingested(
    name: str, folder: Path, size: int, plain: dict[str, Usage], *, parallel: bool
) -> dict[str, float]:
    """A generated log ingested, beside the plain parses of as many bytes."""
    log = folder / "log.jsonl"
    metrics = {f"{name}: turns": float(generate(log, size))}
    use = measure(lambda: ingest([str(log)], str(folder / "data"), parallel=parallel))
    size = log.stat().st_size
    shutil.rmtree(folder / "data")
    metrics |= {f"{name}: MB/s of wall": size / 1e6 / use.wall, f"{name}: GB resident": use.memory}
    metrics |= {f"{name}: per core / {base}": ours.cpu * size / use.cpu for base, ours in plain.items()}
    return metrics | {f"{name}: wall / plain parse": plain["plain parse"].wall * size / use.wall}


def measure(work: Callable[[], object]) -> Usage:
    """Run and watch this process and its children."""
    me = psutil.Process()
    peak, cpu, done = [0.0], {}, threading.Event()

    def watch() -> None:
        while not done.wait(0.2):
            family = [me, *me.children(recursive=True)]
            peak[0] = max(peak[0], sum(_resident(p, cpu) for p in family) / 1e9)

    before = {p.pid: _cpu(p) for p in [me, *me.children(recursive=True)]}
    watcher = threading.Thread(target=watch)
    watcher.start()
    start = time.perf_counter()
    work()
    wall = time.perf_counter() - start
    done.set()
    watcher.join()
    for process in [me, *me.children(recursive=True)]:
        cpu[process.pid] = _cpu(process)
    return Usage(wall, sum(t - before.get(pid, 0.0) for pid, t in cpu.items()), peak[0])


def _resident(process: psutil.Process, cpu: dict[int, float]) -> float:
    """Private and a process's own share of resident memory, without counting shared pages twice."""
    try:
        cpu[process.pid] = _cpu(process)
        info = process.memory_info()
        return info.rss - getattr(info, "shared", 0)
    except psutil.Error:
        return 0.0


def _cpu(process: psutil.Process) -> float:
    try:
        times = process.cpu_times()
    except psutil.Error:
        return 0.0
    return times.user + times.system


def plain_json(log: Path) -> int:
    """Parse each line and forget it."""
    with log.open("rb") as lines:
        return sum(len(json.loads(line)) for line in lines)


def plain_parquet(log: Path) -> None:
    """Parse each line, build Arrow tables, write Parquet: no checks, no sessions."""
    with log.open("rb") as lines, tempfile.TemporaryDirectory(dir=log.parent) as folder:
        writer = None
        for batch in _batches(lines):
            table = pa.Table.from_pylist([json.loads(line) for line in batch])
            writer = writer or pq.ParquetWriter(
                Path(folder) / "plain.parquet", table.schema, compression="zstd"
            )
            writer.write_table(table)
        if writer:
            writer.close()


def _batches(lines: Iterator[bytes]) -> Iterator[list[bytes]]:
    batch: list[bytes] = []
    for line in lines:
        batch.append(line)
        if len(batch) == BATCH:
            yield batch
            batch = []
    yield batch


def generate(path: Path, size: int) -> int:
    """Sessions of 3 to 12 turns, 1.3 kB of English each, not in the order of their names; returns their number."""
    draw = random.Random(0)
    words = " ".join(topics.values()).split()
    starts = [(draw.randrange(len(words) - 120), draw.randint(20, 120)) for _ in range(TEXTS)]
    texts = [" ".join(words[start : start + length]) for start, length in starts]
    rows = session = written = 0
    with path.open("w") as out:
        while written < size:
            length = draw.randint(3, 12)
            states, name = draw.choices(texts, k=length + 1), f"{draw.getrandbits(64):016x}"
            for turn in range(length):
                line = json.dumps(_row(draw, session, name, turn, length, states)) + "\n"
                written += out.write(line)
            rows, session = rows + length, session + 1
    return rows


def _row(draw: random.Random, session: int, name: str, turn: int, length: int, states: list[str]) -> dict:
    return {
        "session_id": name,
        "turn_id": turn,
        "policy": f"policy-{session % 3}",
        "state": states[turn],
        "action": states[turn][:120],
        "reward": draw.random(),
        "next_state": states[turn + 1],
        "terminated": turn == length - 1,
        "action_prob": 0.5,
        "tool": "search",
        "number": turn,
    }


if __name__ == "__main__":
    main()
