"""Measured costs of one trial's bookkeeping, and what they would add up to on 64 nodes: arithmetic, not a run."""

import pickle
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import psutil
import ray
from pydantic import BaseModel
from rich.console import Console

from preplay.embedding import EmbeddedTurns
from preplay.seeding import numpy_rng
from preplay.sweep import Job, Outcome, Prepared, SweepConfig, SweepResult, run_sweep

NODES, SLOTS_PER_NODE = 64, 8
STORE_BYTES_PER_SECOND = 200e6
"""What a shared file system is taken to absorb in all: one NFS server on 2.5 Gbit/s, less protocol."""
TRIALS = (100, 1000)


def halve(curves: list[list[float]], reduction: int = 3) -> list[int]:
    """Stages that ordered halving lets each trial train, given its figure at every stage (lower is better)."""
    seen: list[list[float]] = [[] for _ in curves[0]]
    stages = []
    for curve in curves:
        reached = 0
        for stage, value in enumerate(curve):
            reached = stage + 1
            better = sum(other <= value for other in seen[stage])
            seen[stage].append(value)
            if better >= -(-len(seen[stage]) // reduction):
                break
        stages.append(reached)
    return stages


def halving_on_paper() -> dict[str, float]:
    """Units that halving saves on 1, 3, 9 of 9 units, were a figure half noise until the last stage."""
    found, units = {}, np.array([1, 3, 9])
    for trials in (27, 64, 300):
        spent = []
        for repeat in range(100):
            rng = numpy_rng(repeat, "halving", trials)
            final = rng.normal(size=trials)
            noise = 0.5 * rng.normal(size=(trials, len(units) - 1))
            stages = halve(np.column_stack([final[:, None] + noise, final]).tolist())
            spent.append(units[np.array(stages) - 1].sum())
        found[f"paper/halving of {trials} trials saves"] = float(units[-1] * trials / np.mean(spent))
    return found


def data_metrics(data: EmbeddedTurns) -> dict[str, float]:
    """What a trial pays for the dataset: through the object store, and if it were pickled into each trial."""
    reference = ray.put(data)
    seconds, private = ray.get(_look.remote([reference]))
    started = time.perf_counter()
    copy = pickle.loads(pickle.dumps(data))
    pickled = time.perf_counter() - started
    size = copy.turns.nbytes + copy.bank.embeddings.nbytes
    return {
        "data/MB": size / 1e6,
        "data/MB of its own per trial": private / 1e6,
        "data/ms to get in a trial": 1e3 * seconds,
        "data/ms if pickled per trial": 1e3 * pickled,
    }


@ray.remote
def _look(references: list[Any]) -> tuple[float, float]:
    """Seconds to get the data and touch it, and bytes of private memory that it took."""
    process = psutil.Process()
    ray.get(ray.put(0))
    before, started = process.memory_full_info().uss, time.perf_counter()
    data: EmbeddedTurns = ray.get(references[0])
    data.bank.embeddings.sum()
    return time.perf_counter() - started, float(process.memory_full_info().uss - before)


def paper_metrics(root: Path, result: SweepResult) -> dict[str, float]:
    """Driver's seconds and stored bytes per trial, and what they add up to for 100 and for 1,000 trials."""
    driver = _driver_seconds(root)
    stage = _stage_bytes(root / "tpe+asha" / "trials")
    training = float(np.mean([t.seconds for t in result.trials]))
    metrics = {
        "paper/driver seconds per trial": driver,
        "paper/MB stored per trial": stage / 1e6,
        "paper/training seconds per trial": training,
    }
    for trials in TRIALS:
        rounds = -(-trials // (NODES * SLOTS_PER_NODE))
        metrics |= {
            f"paper/{trials} trials, 64 nodes: training s": rounds * training,
            f"paper/{trials} trials, 64 nodes: driver s": trials * driver,
            f"paper/{trials} trials, 64 nodes: storage s": trials * stage / STORE_BYTES_PER_SECOND,
        }
    return metrics | halving_on_paper()


def overhead_metrics(root: Path) -> dict[str, float]:
    """Wall time of a search beyond that of its trials, two at a time: they sleep, so that no core is short."""
    found = {}
    for seconds in (2.0, 20.0):
        result = _empty_sweep(root / f"sleep-{seconds:g}", trials=8, seconds=seconds, stages=1)
        bare = sum(t.seconds for t in result.trials) / 2
        found[f"overhead, {seconds:g} s trials"] = result.search_seconds / bare - 1
    return found


def _driver_seconds(root: Path) -> float:
    """Wall time per trial of a sweep whose trials do nothing: the second run of it, in which all stages are found."""
    _empty_sweep(root / "empty", trials=20, stages=2)
    (root / "empty" / "sweep.json").unlink()
    return _empty_sweep(root / "empty", trials=20, stages=2).wall_seconds / 20


def _empty_sweep(out: Path, *, trials: int, seconds: float = 0.0, stages: int) -> SweepResult:
    settings: dict[str, Any] = {
        "name": "empty",
        "trainable": "benchmarks._sweep_paper:Empty",
        "base": {"seconds": seconds / stages},
        "space": {"x": {"uniform": [0, 1]}},
        "searcher": {"kind": "random", "trials": trials},
        "scheduler": {"kind": "none", "budget": stages},
        "metrics": [{"name": "loss", "mode": "min"}],
        "ensemble": {"size": 0},
    }
    config = SweepConfig.model_validate(settings)
    return run_sweep(config, out=str(out), resume=True, cache=out / "cache", console=Console(quiet=True))


def _stage_bytes(trials: Path) -> float:
    """Bytes that a trial leaves behind, on average: every stage's figures, and the state of the last one."""
    folders = [path for path in trials.iterdir() if path.is_dir()]
    return float(np.mean([sum(f.stat().st_size for f in path.rglob("*") if f.is_file()) for path in folders]))


class EmptyConfig(BaseModel):
    """One field to search, and how long each stage sleeps."""

    x: float = 0.0
    seconds: float = 0.0


class Empty:
    """A trainable without any work but sleep: what is left is the sweep itself."""

    name = "empty"
    config = EmptyConfig
    fixed = ()
    needs_data = False
    continues = False
    place = ""
    metrics: ClassVar[dict[str, str]] = {"loss": "min"}

    def prepare(self, data: Any, folder: Path, seed: int, cache: Path) -> Prepared:
        """Nothing."""
        return Prepared(None, {})

    def run(self, job: Job) -> Iterator[Outcome]:
        """Sleep, once per stage."""
        for _ in job.shares:
            time.sleep(job.config.seconds)
            yield Outcome({"loss": job.config.x}, np.zeros(1))
