"""From a sweep's configuration to its result, its ensemble and its report, again after any kill."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import fsspec
import ray
import yaml
from ray import tune
from rich.console import Console

from preplay import names
from preplay.errors import PreplayError
from preplay.seeding import derive_seed
from preplay.stage import connect
from preplay.sweep._config import SweepConfig
from preplay.sweep._members import Member, Product
from preplay.sweep._monitor import Monitor
from preplay.sweep._read import configured
from preplay.sweep._records import RESULT, SweepResult, TrialRecord, read_result, write_result, write_text
from preplay.sweep._report import render_sweep
from preplay.sweep._select import Selection, nearly_best, select_diverse
from preplay.sweep._space import nested
from preplay.sweep._stages import StageStore
from preplay.sweep._storage import LEAST_FREE_LATER, check_storage
from preplay.sweep._trainable import Trainable, get_trainable
from preplay.sweep._trial import TrialPlan, run_trial
from preplay.sweep._tune import UNREADABLE, Recorder, SweepStopper, make_tuner, total_trials

CONFIG = "sweep.yaml"


@dataclass(frozen=True)
class _Sweep:
    """What the steps share; ``shared`` is a reference to the data in the object store."""

    config: SweepConfig
    trainable: Trainable
    plan: TrialPlan
    shared: Any
    out: str
    console: Console


def run_sweep(
    config: SweepConfig, *, out: str | None = None, resume: bool = False, cache: Path, console: Console
) -> SweepResult:
    """Run a sweep, or what is left of it, and publish its ensemble. Ray is started here unless it runs.

    Args:
        out: Folder or URI of the sweep in place of ``storage/name``.
        resume: Go on with the sweep that stands there, if one does; finished stages of trials are not repeated.
        cache: Folder of the embedding cache, and of simulated data where ``out`` is a URI.

    Raises:
        PreplayError: Before any training, when the output cannot be written to, or does not fit to ``resume``.
    """
    out = absolute(out or config.out)
    check_storage(out)
    _check_output(config, out, resume)
    if resume and _exists(f"{out}/{RESULT}"):
        console.print("The sweep is complete; nothing is left to do.")
        return read_result(out)
    started = time.perf_counter()
    write_text(f"{out}/{CONFIG}", yaml.safe_dump(config.model_dump(mode="json"), sort_keys=False))
    sweep = _prepare(config, out, cache, console)
    began = time.perf_counter()
    trials = _search(sweep)
    result = SweepResult(
        config=config, trials=trials, inputs=sweep.plan.inputs, search_seconds=time.perf_counter() - began
    )
    result = _publish(sweep, result)
    result = result.model_copy(update={"wall_seconds": time.perf_counter() - started})
    write_text(f"{out}/report.html", render_sweep(result))
    write_result(result, out)
    for trial in result.trials:
        StageStore(sweep.plan.store, trial.key).forget_state()
    return result


def absolute(uri: str) -> str:
    """Local folders from the root on: workers may stand elsewhere."""
    return uri if "://" in uri else str(Path(uri).absolute())


def _prepare(config: SweepConfig, out: str, cache: Path, console: Console) -> _Sweep:
    connect()
    trainable = get_trainable(config.trainable)
    folder = cache / "sweeps" / config.name if "://" in out else Path(out) / "data"
    with console.status("Preparing the data"):
        prepared = trainable.prepare(config.data, folder, config.seed, cache)
    check_metrics(config, prepared.told)
    plan = TrialPlan(
        trainable=config.trainable,
        base=config.base,
        inputs=prepared.inputs,
        seed=config.seed,
        budgets=config.scheduler.stages,
        store=f"{out}/trials",
        metrics=tuple(metric.name for metric in config.metrics),
        keep=config.scheduler.kind != "pbt",
    )
    return _Sweep(config, trainable, plan, ray.put(prepared.shared), out, console)


def check_metrics(config: SweepConfig, told: frozenset[str] | None) -> None:
    """Refuse, before any training, to search by what the data cannot tell."""
    if told is not None and (unknown := [m.name for m in config.metrics if m.name not in told]):
        raise PreplayError(
            f"these data cannot tell {unknown[0]}: no logged action is known to be right, or all are.",
            where="metrics",
            fix=f"Choose among {', '.join(sorted(told))}.",
        )


def _search(sweep: _Sweep) -> list[TrialRecord]:
    """Run all trials. Those of an earlier run find their finished stages in the store; PBT's have none."""
    if note := idle_note(sweep.config, ray.cluster_resources().get("CPU", 1)):
        sweep.console.print(note, style="yellow")
    stopper = SweepStopper(sweep.config)
    recorder = Recorder(sweep.config, stopper, sweep.plan)
    monitor = Monitor(sweep.config, total_trials(sweep.config), sweep.console)
    work = tune.with_parameters(run_trial, plan=sweep.plan, shared=sweep.shared)
    name = f"tune-{_tune_runs(sweep.out)}"
    tuner = make_tuner(sweep.config, work, sweep.out, name, [recorder, monitor], stopper)
    _fit(tuner, sweep.plan.store)
    if not any(trial.status == "finished" for trial in recorder.trials):
        reasons = {t.reason for t in recorder.trials if t.reason} or {
            "it was stopped before the first trial's end"
        }
        raise PreplayError(f"no trial got to the end: {sorted(reasons)[0]}", where=sweep.out)
    return recorder.trials


def _fit(tuner: tune.Tuner, store: str) -> None:
    """Run all trials; say so when the storage was lost on the way: what is finished is kept, --resume goes on.

    Tune may notice it first, by half of a file of its own that it cannot read back.
    """
    try:
        tuner.fit()
    except UNREADABLE as error:
        check_storage(store, least_free=LEAST_FREE_LATER)
        raise PreplayError(
            f"Ray Tune lost a file of its own ({type(error).__name__}: {error}).",
            where=store,
            fix="Go on by --resume: what is finished is kept.",
        ) from error
    check_storage(store, least_free=LEAST_FREE_LATER)


def idle_note(config: SweepConfig, cpus: float) -> str | None:
    """What to tell the user when TPE's lag keeps a part of the cluster idle."""
    slots = min(int(cpus / config.resources.cpu), config.searcher.trials)
    if config.searcher.kind != "tpe" or config.searcher.lag >= slots:
        return None
    return (
        f"There is room for {slots} trials side by side, but searcher.lag lets {config.searcher.lag} run: each is "
        "proposed from what all but the latest ones showed. A larger lag uses more of the cluster."
    )


def _publish(sweep: _Sweep, result: SweepResult) -> SweepResult:
    """Choose, train and publish the ensemble; write the best configuration as YAML."""
    config, best = sweep.config, result.ranked()[0]
    settings = configured(sweep.trainable, config.base, best.parameters).model_dump(mode="json")
    placed = nested({sweep.trainable.place: settings}) if sweep.trainable.place else settings
    write_text(f"{sweep.out}/best.yaml", yaml.safe_dump(placed, sort_keys=False))
    if not config.ensemble.size:
        return result
    candidates = result.ranked()[: config.ensemble.candidates]
    with sweep.console.status("Choosing the members"):
        selection = _select(sweep, candidates)
    chosen = [candidates[i] for i in selection.chosen]
    metrics = {"best_trial": selection.losses[0], "ensemble": selection.losses[-1]}
    if (default := result.default()) is not None and sweep.plan.keep:
        metrics["default"] = _loss(sweep, default)
    target = names.next_version(config.ensemble.name or config.name)
    with sweep.console.status(f"Training {len(chosen)} members to the end"):
        found = sweep.trainable.publish(_product(sweep, chosen, {"validation": metrics}), target)
    uri = f"{names.SCHEME}{target.parent.name}@{target.name[1:]}"
    update = {"members": [t.number for t in chosen], "ensemble": uri, "ensemble_metrics": found}
    return result.model_copy(update=update)


def _select(sweep: _Sweep, candidates: list[TrialRecord]) -> Selection:
    """Greedy selection on stored predictions; the best trials where averages of predictions say nothing."""
    size, shared = sweep.config.ensemble.size, ray.get(sweep.shared)
    if _average_loss(sweep, candidates[0]) is None:
        name = sweep.config.metric.name
        places = nearly_best([trial.metrics[name] for trial in candidates], size=size)
        return Selection(places, [_loss(sweep, candidates[0])])
    predictions = [_prediction(sweep, trial) for trial in candidates]
    return select_diverse(
        predictions, lambda p: cast(float, sweep.trainable.ensemble_loss(shared, p)), size=size
    )


def _loss(sweep: _Sweep, trial: TrialRecord) -> float:
    """A trial's loss as a member; where predictions say nothing, the figure that the sweep went by."""
    metric, loss = sweep.config.metric, _average_loss(sweep, trial)
    return (1.0 if metric.mode == "min" else -1.0) * trial.metrics[metric.name] if loss is None else loss


def _average_loss(sweep: _Sweep, trial: TrialRecord) -> float | None:
    """Validation error of a trial's stored prediction; PBT's trials have none that fit."""
    if not sweep.plan.keep:
        return None
    return sweep.trainable.ensemble_loss(ray.get(sweep.shared), _prediction(sweep, trial))


def _prediction(sweep: _Sweep, trial: TrialRecord) -> Any:
    return StageStore(sweep.plan.store, trial.key).finished(sweep.plan.budgets)[-1].prediction


def _product(sweep: _Sweep, chosen: list[TrialRecord], metrics: dict[str, Any]) -> Product:
    config = sweep.config
    members = [
        Member(
            trial.number,
            _longer(configured(sweep.trainable, config.base, trial.parameters), config.ensemble.effort),
            trial.parameters,
            derive_seed(config.seed, "member", place),
        )
        for place, trial in enumerate(chosen)
    ]
    return Product(
        members,
        sweep.shared,
        sweep.plan.inputs,
        {"sweep": config.name, "trainable": config.trainable, "seed": config.seed},
        config.seed,
        metrics,
        config.resources.cpu,
        config.resources.gpu,
    )


def _longer(settings: Any, effort: float) -> Any:
    """The configuration with every number of steps multiplied."""
    update: dict[str, Any] = {}
    for name in type(settings).model_fields:
        value = getattr(settings, name)
        if name == "steps":
            update[name] = max(1, round(value * effort))
        elif hasattr(value, "model_fields"):
            update[name] = _longer(value, effort)
    return settings.model_copy(update=update)


def _check_output(config: SweepConfig, out: str, resume: bool) -> None:
    file = f"{out}/{CONFIG}"
    if not _exists(file):
        return
    if not resume:
        raise PreplayError(
            "a sweep stands here already.", where=out, fix="Go on with it by --resume, or give another --out."
        )
    fs, path = fsspec.core.url_to_fs(file)
    before = yaml.safe_load(fs.cat_file(path))
    now = config.model_dump(mode="json")
    if changed := [key for key in now if now[key] != before.get(key)]:
        raise PreplayError(
            f"the sweep that stands here has other settings ({', '.join(changed)}).",
            where=out,
            fix="Resume with the file it was started with, or give another --out.",
        )


def _tune_runs(out: str) -> int:
    """How many runs of this sweep have been started: each has a folder of Tune's own."""
    fs, path = fsspec.core.url_to_fs(out)
    return len(fs.glob(f"{path}/tune-*"))


def _exists(uri: str) -> bool:
    fs, path = fsspec.core.url_to_fs(uri)
    return fs.exists(path)
