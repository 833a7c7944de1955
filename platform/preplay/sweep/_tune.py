"""A sweep's parts in Ray Tune's terms."""

import logging
import os
import pickle
from collections.abc import Callable
from typing import Any

import fsspec
import pyarrow.fs
import ray
from ray import tune
from ray.air.execution._internal import RayActorManager
from ray.exceptions import OutOfMemoryError, RayActorError
from ray.tune import Callback, Stopper
from ray.tune.execution import tune_controller
from ray.tune.experiment import Trial
from ray.tune.schedulers import FIFOScheduler, HyperBandScheduler, PopulationBasedTraining, TrialScheduler
from ray.tune.search import BasicVariantGenerator

from preplay.sweep._asha import OrderedHalving, number_of
from preplay.sweep._config import SweepConfig
from preplay.sweep._records import TrialRecord
from preplay.sweep._search import StudySearch
from preplay.sweep._space import Parameter, grid
from preplay.sweep._storage import can_store
from preplay.sweep._trial import TrialPlan

UNREADABLE = (OSError, EOFError, pickle.UnpicklingError)
"""What reading one of Tune's own files raises when a full or lost disk holds half of it, or nothing."""
_OUT_OF_MEMORY = "out of memory: Ray ended the worker before the machine ran out"


class _ActorManager(RayActorManager):
    """Ray's own takes the whole experiment down when the memory monitor ends one worker; here that worker is dead."""

    def _actor_task_failed(self, tracked_actor_task: Any, exception: Exception) -> None:
        if isinstance(exception, OutOfMemoryError):
            exception = RayActorError(error_msg=_OUT_OF_MEMORY)
        super()._actor_task_failed(tracked_actor_task, exception)


def prepare_tune(config: SweepConfig) -> None:
    """Our own table and files in place of Tune's; workers stay in the folder they are in."""
    tune_controller.RayActorManager = _ActorManager  # pyright: ignore[reportPrivateImportUsage]
    # Trials that wait for a slot are what an autoscaler goes by; Tune would show it one at a time.
    waiting = config.searcher.lag if config.searcher.kind == "tpe" else min(200, total_trials(config))
    logging.getLogger("ray.tune").setLevel(logging.CRITICAL)  # failures are told by the result
    os.environ |= {
        "TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1",
        "TUNE_DISABLE_SIGINT_HANDLER": "1",  # Ctrl-C ends at once: whatever was finished is in the store
        "RAY_AIR_NEW_OUTPUT": "0",
        "RAY_CHDIR_TO_TRIAL_DIR": "0",
        "TUNE_MAX_PENDING_TRIALS_PG": str(waiting),
        "TUNE_WARN_EXCESSIVE_EXPERIMENT_CHECKPOINT_SYNC_THRESHOLD_S": "0",
    }


def total_trials(config: SweepConfig) -> int:
    """How many trials there will be."""
    return len(grid(config.space)) if config.searcher.kind == "grid" else config.searcher.trials


def make_tuner(
    config: SweepConfig,
    trainable: Callable[..., Any],
    out: str,
    name: str,
    callbacks: list[Callback],
    stopper: Stopper,
) -> tune.Tuner:
    """The tuner of a new run; its own files go to ``out/name``."""
    prepare_tune(config)
    path, filesystem = _tune_storage(out)
    minutes, population = config.stop.minutes, config.scheduler.kind == "pbt"
    searcher = (
        BasicVariantGenerator(random_state=config.seed)
        if population
        else StudySearch(config.searcher, config.space, config.metrics, config.seed)
    )
    return tune.Tuner(
        tune.with_resources(trainable, {"cpu": config.resources.cpu, "gpu": config.resources.gpu}),
        param_space=_population(config) if population else {},
        tune_config=tune.TuneConfig(
            search_alg=searcher,
            scheduler=make_scheduler(config),
            num_samples=1 if population else total_trials(config),
            time_budget_s=minutes * 60 if minutes else None,
            # A trial that is given a kept worker on a node that has just died is not retried by Tune but failed.
            reuse_actors=sum(node["Alive"] for node in ray.nodes()) == 1,
            trial_dirname_creator=_folder_name,
        ),
        run_config=tune.RunConfig(
            name=name,
            storage_path=path,
            storage_filesystem=filesystem,
            verbose=0,
            stop=stopper,
            callbacks=[*callbacks, *_loggers(config)],
            failure_config=tune.FailureConfig(max_failures=config.retries),
            # With fewer, PBT loses the checkpoint that another trial is about to take over.
            checkpoint_config=tune.CheckpointConfig(num_to_keep=4 if config.scheduler.kind == "pbt" else 1),
        ),
    )


def _population(config: SweepConfig) -> dict[str, Any]:
    """PBT takes no searcher: it changes what it drew at random."""
    numbers = list(range(config.searcher.trials))
    drawn = {name: _mutation(parameter) for name, parameter in config.space.items()}
    return {"number": tune.grid_search(numbers), "parameters": drawn}


def _tune_storage(out: str) -> tuple[str, pyarrow.fs.FileSystem | None]:
    """Where Tune keeps its own files: a path, and for URIs the file system, which fsspec knows more of than Arrow."""
    if "://" not in out:
        return out, None
    filesystem, path = fsspec.core.url_to_fs(out)
    return path, pyarrow.fs.PyFileSystem(pyarrow.fs.FSSpecHandler(filesystem))


def make_scheduler(config: SweepConfig) -> TrialScheduler:
    """Ours for ASHA, Ray's for the others."""
    scheduler, metric = config.scheduler, config.metric
    if scheduler.kind == "none":
        return FIFOScheduler()
    if scheduler.kind == "asha":
        return OrderedHalving(metric, scheduler.budget, scheduler.reduction)
    shared: dict[str, Any] = {"time_attr": "budget", "metric": metric.name, "mode": metric.mode}
    if scheduler.kind == "hyperband":
        return HyperBandScheduler(**shared, max_t=scheduler.budget, reduction_factor=scheduler.reduction)
    mutations: Any = {"parameters": {name: _mutation(parameter) for name, parameter in config.space.items()}}
    return PopulationBasedTraining(
        **shared, perturbation_interval=scheduler.perturb_every, hyperparam_mutations=mutations
    )


def _mutation(parameter: Parameter) -> Any:
    if parameter.choice is not None:
        return tune.choice(list(parameter.choice))
    if parameter.randint is not None:
        return tune.randint(parameter.randint[0], parameter.randint[1] + 1)
    if parameter.loguniform is not None:
        return tune.loguniform(*parameter.loguniform)
    assert parameter.uniform is not None
    return tune.uniform(*parameter.uniform)


def _folder_name(trial: Trial) -> str:
    return f"trial-{number_of(trial)}-{trial.trial_id}"


def _loggers(config: SweepConfig) -> list[Callback]:
    """Ray's own exporters, imported only when they are asked for."""
    found: list[Callback] = []
    if "tensorboard" in config.loggers:
        from ray.tune.logger import TBXLoggerCallback

        found.append(TBXLoggerCallback())
    if "mlflow" in config.loggers:
        from ray.air.integrations.mlflow import MLflowLoggerCallback

        found.append(MLflowLoggerCallback(experiment_name=config.name))
    return found


class SweepStopper(Stopper):
    """Ends the sweep when its target is reached, too many trials have failed, or nothing can be stored any more."""

    def __init__(self, config: SweepConfig):
        self._config, self._reached, self.failures, self.stored = config, False, 0, True

    def __call__(self, trial_id: str, result: dict[str, Any]) -> bool:
        """Look at a report; never stops a single trial."""
        target, metric = self._config.stop.target, self._config.metric
        if target is not None and result["budget"] == self._config.scheduler.budget:
            sign = 1 if metric.mode == "min" else -1
            self._reached |= sign * result[metric.name] <= sign * target
        return False

    def stop_all(self) -> bool:
        """Whether it is over."""
        return self._reached or self.failures >= self._config.stop.failures or not self.stored


class Recorder(Callback):
    """Keeps what became of each trial."""

    def __init__(self, config: SweepConfig, stopper: SweepStopper, plan: TrialPlan):
        self._config, self._stopper, self._plan = config, stopper, plan
        self.trials: list[TrialRecord] = []

    def __getstate__(self) -> dict[str, Any]:
        """Tune pickles its callbacks into its own files, and never reads this one back."""
        return {}

    def on_trial_error(self, iteration: int, trials: list[Trial], trial: Trial, **info: Any) -> None:
        """A trial failed for good."""
        self._stopper.failures += 1
        self._stopper.stored = self._stopper.stored and can_store(self._plan.store)

    def on_experiment_end(self, trials: list[Trial], **info: Any) -> None:
        """All is done."""
        self.trials = sorted((self._record(trial) for trial in trials), key=lambda record: record.number)

    def _record(self, trial: Trial) -> TrialRecord:
        result = trial.last_result or {}
        budget = int(result.get("budget", 0))
        full = budget == self._config.scheduler.budget
        status = {Trial.ERROR: "failed", Trial.TERMINATED: "finished" if full else "stopped"}.get(
            trial.status, "unfinished"
        )
        history = result.get("history", [])
        names = [name for name in (history[-1] if history else {}) if name not in ("budget", "seconds")]
        return TrialRecord(
            number=number_of(trial),
            parameters=trial.config["parameters"],
            status=status,  # pyright: ignore[reportArgumentType]
            reason=failure_reason(_error_of(trial)) if trial.status == Trial.ERROR else None,
            budget=budget,
            seconds=float(result.get("seconds", 0.0)),
            metrics={name: float(result[name]) for name in names},
            history=history,
            key=self._plan.key(trial.config["parameters"]),
        )


def _error_of(trial: Trial) -> BaseException | None:
    try:
        return trial.get_pickled_error()
    except UNREADABLE:
        return None


def failure_reason(error: BaseException | None) -> str:
    """One sentence about why a trial failed."""
    if error is None:
        return "unknown"
    cause = getattr(error, "cause", None) or error
    kind = type(cause).__name__
    if _OUT_OF_MEMORY in str(cause) or isinstance(cause, OutOfMemoryError):
        return _OUT_OF_MEMORY
    if isinstance(cause, RayActorError):
        return "the worker process died: it was killed, ran out of memory, or its node was lost"
    return f"{kind}: {cause}".strip().splitlines()[0]
