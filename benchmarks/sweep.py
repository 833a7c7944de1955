"""What sweeps are worth: three searchers on one budget, compute saved by halving, overhead, and the choice itself.

The truth of the support desk is compared with afterwards; no sweep sees it.
"""

import os
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import ray
import torch
from rich.console import Console

from benchmarks._common import bench_main
from benchmarks._sweep_paper import data_metrics, halve, overhead_metrics, paper_metrics
from benchmarks._sweep_truth import Desk
from preplay.estimators import FQEConfig, spearman
from preplay.seeding import derive_seed, numpy_rng
from preplay.stage import connect
from preplay.sweep import SweepConfig, SweepResult, run_sweep
from preplay.sweep.trainables import feature_model, fqe_data, judge, on_policy_check
from preplay.world_model import WorldModelConfig, list_members, load_world_model, train_world_model

GOALS = {
    "asha/compute saved": ">= 3",
    "asha/regret of its best": "about 0",
    "overhead, 20 s trials": "<= 0.10",
    "ensemble/error": "< default",
}
QUICK = {"steps": 90, "warmup": 10, "evaluate_every": 30}
FULL = {"steps": 600, "warmup": 50, "evaluate_every": 50}


@dataclass(frozen=True)
class Size:
    """Sessions of a log, and logs that are swept; trials of halving, and of searchers that train every trial to the
    end; steps; configs whose criteria are compared with the truth; policies and their sessions for the truth."""

    sessions: int
    logs: int
    halved: int
    whole: int
    steps: dict[str, int]
    checked: int
    targets: int
    truth_sessions: int
    fqe: dict[str, int]


SIZES = {
    "debug": Size(120, 1, 6, 2, QUICK, 3, 3, 4000, {"steps": 30, "iterations": 5, "members": 2}),
    "full": Size(600, 3, 27, 8, FULL, 12, 8, 20_000, {"steps": 60, "iterations": 12, "members": 2}),
}
SPACE: dict[str, Any] = {
    "dynamics": {"choice": ["diffusion", "flow", "gaussian"]},
    "window": {"randint": [1, 3]},
    "optimiser.learning_rate": {"loguniform": [3e-4, 5e-3]},
    "features.phi": {"choice": [4, 16]},
    "features.optimiser.learning_rate": {"choice": [3e-4, 1e-3]},
}
METRIC = "energy_score"
BUDGET = 9
"""Stages end at 1, 3 and 9 parts of a training; a 27th part says nothing yet (it ends within the warm-up)."""
GRID: dict[str, Any] = {
    "dynamics": {"choice": ["diffusion", "flow"]},
    "optimiser.learning_rate": {"choice": [5e-4, 3e-3]},
    "features.optimiser.learning_rate": SPACE["features.optimiser.learning_rate"],
}


def run(preset: str) -> dict[str, float]:
    """All parts; what is slow is told on the way."""
    size, metrics = SIZES[preset], {}
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        os.environ["PREPLAY_MODELS"] = str(root / "models")
        connect(num_cpus=2)
        results = _searchers(root, size)
        desk = _desk(root, "tpe+asha", size)
        metrics |= _compare(results, desk)
        metrics |= _against_default(root, size, results["tpe+asha"], desk)
        metrics |= _halving(results)
        metrics |= {
            f"seconds with {n} worker(s)": s for n, s in _workers(root, results["random, whole"]).items()
        }
        metrics |= overhead_metrics(root)
        metrics |= data_metrics(desk.data)
        metrics |= paper_metrics(root, results["tpe+asha"])
        metrics |= _criteria(desk, size)
        metrics |= _fqe_criterion(desk, size)
    ray.shutdown()
    return metrics


def _searchers(root: Path, size: Size) -> dict[str, SweepResult]:
    """Halving gets as many units as the searchers that train every trial to the end, or a little less."""
    whole = {"kind": "none", "budget": BUDGET, "first": BUDGET}
    arms: dict[str, dict[str, Any]] = {
        "tpe+asha": {"searcher": {"kind": "tpe", "trials": size.halved, "startup": 6, "lag": 2}},
        "random, whole": {"searcher": {"kind": "random", "trials": size.whole}, "scheduler": whole},
        "grid, whole": {"space": GRID, "searcher": {"kind": "grid"}, "scheduler": whole},
        "random, all stages": {
            "searcher": {"kind": "random", "trials": size.halved},
            "scheduler": {"kind": "none", "budget": BUDGET},
        },
    }
    if size.whole < 8:
        del arms["grid, whole"]
    return {name: _sweep(root, name, size, changes) for name, changes in arms.items()}


def _default(size: Size) -> dict[str, Any]:
    """The default world model, trained as briefly as all the others."""
    default = WorldModelConfig()
    parts = {"optimiser": default.optimiser, "outcome": default.outcome}
    brief = {name: part.model_dump() | size.steps for name, part in parts.items()}
    return brief | {"features": {"optimiser": default.features.optimiser.model_dump() | size.steps}}


def _sweep(root: Path, name: str, size: Size, changes: dict[str, Any]) -> SweepResult:
    settings: dict[str, Any] = {
        "name": name.replace(" ", "-").replace(",", "").replace("+", "-"),
        "trainable": "world_model",
        "base": _default(size),
        "data": {"generate": "support_desk", "sessions": size.sessions},
        "space": SPACE,
        "scheduler": {"kind": "asha", "budget": BUDGET},
        "metrics": [{"name": METRIC, "mode": "min"}],
        "ensemble": {"size": 2},
    }
    started = time.perf_counter()
    config = SweepConfig.model_validate(settings | changes)
    result = run_sweep(config, out=str(root / name), cache=root / "cache", console=Console(quiet=True))
    print(f"{name}: {time.perf_counter() - started:.0f} s", flush=True)
    return result


def _compare(results: dict[str, SweepResult], desk: Desk) -> dict[str, float]:
    """Best validation error per arm, seconds of training, and how wrong the published ensemble is."""
    metrics = {}
    for name, result in results.items():
        assert result.ensemble
        models = [load_world_model(path) for path in list_members(result.ensemble)]
        values = [desk.model_values(model) for model in models]
        metrics |= {
            f"{name}/best validation": result.ranked()[0].metrics[METRIC],
            f"{name}/training seconds": sum(t.seconds for t in result.trials),
            f"{name}/ensemble error": desk.error(np.mean(values, axis=0)),
        }
    return metrics


def _desk(root: Path, name: str, size: Size) -> Desk:
    """The logs of a sweep, and what no sweep may look at."""
    data = root / name / "data" / "embedded"
    return Desk.load(
        data, root / "cache", starts=100, targets=size.targets, truth_sessions=size.truth_sessions
    )


def _against_default(root: Path, size: Size, first: SweepResult, desk: Desk) -> dict[str, float]:
    """Swept ensembles against as many models of the default configuration: equal cost of inference, other seeds.

    The interval is of the mean over logs, over resampled policies.
    """
    found, metrics = [_log_errors(first, desk)], {}
    for log in range(1, size.logs):
        name, data = f"log {log}", {"generate": "support_desk", "sessions": size.sessions, "seed": log}
        searcher = {"kind": "tpe", "trials": size.halved, "startup": 6, "lag": 2}
        result = _sweep(root, name, size, {"searcher": searcher, "data": data, "seed": log})
        found.append(_log_errors(result, _desk(root, name, size)))
    for log, (ours, theirs) in enumerate(found):
        metrics |= {
            f"log {log}/ensemble error": float(ours.mean()),
            f"log {log}/default": float(theirs.mean()),
        }
    ours, theirs = np.mean(found, axis=0)
    draws = numpy_rng(0, "policies").integers(0, len(ours), (2000, len(ours)))
    low, high = np.quantile((ours - theirs)[draws].mean(1), [0.025, 0.975])
    return metrics | {
        "default/error": float(theirs.mean()),
        "ensemble/error": float(ours.mean()),
        "ensemble - default/low": float(low),
        "ensemble - default/high": float(high),
    }


def _log_errors(result: SweepResult, desk: Desk) -> tuple[np.ndarray, np.ndarray]:
    """Errors of the ensemble and of the default on each policy, in shares of the range of the truths."""
    assert result.ensemble
    ours = [desk.model_values(load_world_model(path)) for path in list_members(result.ensemble)]
    config = WorldModelConfig.model_validate(result.config.base)
    seeds = [derive_seed(0, "default", i) for i in range(len(ours))]
    theirs = [desk.model_values(train_world_model(desk.data, config, seed=s).model) for s in seeds]
    width = np.ptp(desk.truths)
    return np.abs(np.mean(ours, 0) - desk.truths) / width, np.abs(np.mean(theirs, 0) - desk.truths) / width


def _halving(results: dict[str, SweepResult]) -> dict[str, float]:
    """What halving would have done with trials that were all trained to the end: same proposals, same figures."""
    trials = results["random, all stages"].trials
    stages = halve([[row[METRIC] for row in t.history] for t in trials])
    spent = sum(row["seconds"] for t, n in zip(trials, stages, strict=True) for row in t.history[:n])
    finished = [t for t, n in zip(trials, stages, strict=True) if n == len(t.history)]
    best, kept = (min(t.metrics[METRIC] for t in some) for some in (trials, finished))
    return {
        "asha/compute saved": sum(t.seconds for t in trials) / spent,
        "asha/regret of its best": kept - best,
    }


def _workers(root: Path, result: SweepResult) -> dict[int, float]:
    """Wall time of the search with two workers, and with one: run again, with two CPUs per trial."""
    changed = result.config.model_copy(
        update={"resources": result.config.resources.model_copy(update={"cpu": 2.0}), "seed": 1}
    )
    alone = run_sweep(changed, out=str(root / "alone"), cache=root / "cache", console=Console(quiet=True))
    return {1: alone.search_seconds, 2: result.search_seconds}


def _criteria(desk: Desk, size: Size) -> dict[str, float]:
    """Do figures that need no truth choose world models that are right about unseen policies?"""
    rows: list[dict[str, float]] = []
    for number in range(size.checked):
        rng = numpy_rng(number, "configuration")
        changes = {
            "dynamics": str(rng.choice(["gaussian", "flow", "knn"])),
            "features": {"phi": int(rng.choice([2, 4, 16])), "optimiser": size.steps},
            "optimiser": size.steps
            | {"learning_rate": float(np.exp(rng.uniform(np.log(3e-5), np.log(5e-3))))},
            "outcome": size.steps | {"learning_rate": float(np.exp(rng.uniform(np.log(3e-5), np.log(5e-3))))},
        }
        trained = train_world_model(desk.data, WorldModelConfig.model_validate(changes), seed=0)
        figures = dict(judge(trained, desk.data, 0).metrics)
        rows.append(figures | {"error": desk.error(desk.model_values(trained.model))})
    return _how_well(rows, ("rollout_error", "on_policy_error", "energy_score"), "world model")


def _fqe_criterion(desk: Desk, size: Size) -> dict[str, float]:
    """Does cross-fitted calibration on the logging policies choose settings of FQE that are right about others?"""
    trained = feature_model(desk.data, 0)
    shared = fqe_data(desk.data, trained, 2, 0)
    rows: list[dict[str, float]] = []
    for number in range(size.checked):
        rng = numpy_rng(number, "fqe configuration")
        changes = {
            "learning_rate": float(np.exp(rng.uniform(np.log(1e-4), np.log(1e-2)))),
            "hidden": int(rng.choice([8, 64])),
            "steps": int(rng.choice([size.fqe["steps"] // 4, size.fqe["steps"], size.fqe["steps"] * 2])),
        }
        config = FQEConfig.model_validate(size.fqe | changes)
        figures = dict(on_policy_check(shared, config, seed=0).metrics)
        rows.append(figures | {"error": desk.error(desk.fqe_values(shared, trained.model, config, 0))})
    return _how_well(rows, ("q_error", "value_error"), "fqe")


def _how_well(rows: list[dict[str, float]], criteria: tuple[str, ...], what: str) -> dict[str, float]:
    """Rank agreement of each criterion with the true error, and the true error of what it chooses."""
    errors = np.array([row["error"] for row in rows])
    found = {
        f"choice of {what}/mean error": float(errors.mean()),
        f"choice of {what}/best": float(errors.min()),
    }
    for criterion in criteria:
        values = np.array([row[criterion] for row in rows])
        found[f"choice of {what}/{criterion}: Spearman"] = spearman(errors, values)
        found[f"choice of {what}/{criterion}: error of its choice"] = float(errors[int(values.argmin())])
    return found


if __name__ == "__main__":
    bench_main(run, title="Sweeps", goals=GOALS)
