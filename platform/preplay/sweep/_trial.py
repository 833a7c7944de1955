"""One trial, as Ray Tune runs it in a worker."""

import json
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from preplay.errors import PreplayError
from preplay.sweep._read import configured
from preplay.sweep._stages import CommonFiles, Stage, StageStore, trial_key
from preplay.sweep._storage import LEAST_FREE_LATER, check_storage
from preplay.sweep._trainable import Job, Outcome, get_trainable

_MARK = "stage.json"


@dataclass(frozen=True)
class TrialPlan:
    """What all trials share besides the data.

    Args:
        trainable, base, inputs, seed: Decide, with a trial's parameters, what comes out of it.
        budgets: Units at which it reports, ascending.
        store: Folder or URI of finished stages.
        metrics: What trials are compared by; stages before the last need not measure more.
        keep: Stages are kept under their content and never repeated. PBT's are not: they depend on other trials.
    """

    trainable: str
    base: dict[str, Any]
    inputs: dict[str, str]
    seed: int
    budgets: tuple[int, ...]
    store: str
    metrics: tuple[str, ...]
    keep: bool

    def key(self, parameters: Mapping[str, Any]) -> str:
        """Name of the trial with these parameters."""
        deciding = {name: vars(self)[name] for name in ("trainable", "base", "inputs", "seed", "budgets")}
        return trial_key(deciding | {"parameters": dict(parameters)})


def run_trial(config: dict[str, Any], *, plan: TrialPlan, shared: Any) -> None:
    """Train stage by stage, report each to Ray Tune; finished stages of an earlier run are reported again at once."""
    from ray import tune

    store = StageStore(plan.store, plan.key(config["parameters"]))
    checkpoint = tune.get_checkpoint()
    reported = _mark_of(checkpoint)
    history: list[dict[str, float]] = []
    with tempfile.TemporaryDirectory() as scratch:
        state = Path(scratch) / "state"
        for stage in _stages(config, plan, shared, store, state, checkpoint):
            history.append(stage.row())
            if stage.budget > reported:
                _report(stage, history, state if not plan.keep else None)


def _stages(
    config: dict[str, Any], plan: TrialPlan, shared: Any, store: StageStore, state: Path, checkpoint: Any
) -> Iterator[Stage]:
    """Finished stages as they are, then the others as they are trained."""
    import torch

    torch.set_num_threads(1)
    trainable = get_trainable(plan.trainable)
    done = store.finished(plan.budgets, plan.metrics) if plan.keep else []
    yield from done
    if len(done) == len(plan.budgets):
        return
    state.mkdir(parents=True, exist_ok=True)
    if done and trainable.continues:
        store.fetch_state(done[-1].budget, state)
    skip = len(done) if plan.keep else _restore(checkpoint, state, plan)
    left = plan.budgets[skip:]
    shares = tuple(budget / plan.budgets[-1] for budget in left)
    settings = configured(trainable, plan.base, config["parameters"])
    common = CommonFiles(plan.store, {"inputs": plan.inputs, "seed": plan.seed})
    job = Job(shared, settings, plan.seed, shares, skip, state, common, frozenset(plan.metrics))
    outcomes = iter(trainable.run(job))
    for budget in left:
        check_storage(plan.store, least_free=LEAST_FREE_LATER)  # not after hours of training
        started = time.perf_counter()
        outcome = next(outcomes)
        _check(outcome, budget)
        stage = Stage(budget, time.perf_counter() - started, dict(outcome.metrics), outcome.prediction)
        if plan.keep:
            store.save(stage, state if trainable.continues and budget < plan.budgets[-1] else None)
        yield stage


def _restore(checkpoint: Any, state: Path, plan: TrialPlan) -> int:
    """Take up the state in Tune's checkpoint (PBT); the number of stages behind it."""
    if checkpoint is None:
        return 0
    checkpoint.to_directory(str(state))
    return plan.budgets.index(_mark_of(checkpoint)) + 1


def _mark_of(checkpoint: Any) -> int:
    if checkpoint is None:
        return 0
    with checkpoint.as_directory() as folder:
        return json.loads((Path(folder) / _MARK).read_text())["budget"]


def _report(stage: Stage, history: list[dict[str, float]], state: Path | None) -> None:
    """Tune wants a checkpoint to pause a trial; the state itself is in the store, except for PBT."""
    from ray import tune

    with tempfile.TemporaryDirectory() as scratch:
        folder = state or Path(scratch)
        (folder / _MARK).write_text(json.dumps({"budget": stage.budget}))
        total = sum(row["seconds"] for row in history)
        tune.report(
            stage.row() | {"history": list(history), "seconds": total},
            checkpoint=tune.Checkpoint.from_directory(str(folder)),
        )


def _check(outcome: Outcome, budget: int) -> None:
    bad = [name for name, value in outcome.metrics.items() if not np.isfinite(value)]
    if bad:
        raise PreplayError(
            f"{bad[0]} is {outcome.metrics[bad[0]]} at budget {budget}: the trial has diverged."
        )
