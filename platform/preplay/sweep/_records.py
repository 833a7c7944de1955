"""What a sweep found, as data: ``sweep.json``."""

import json
import math
from collections.abc import Sequence
from typing import Any, Literal

import fsspec
from pydantic import BaseModel, ValidationError

from preplay.errors import PreplayError
from preplay.sweep._config import MetricConfig, SweepConfig

RESULT = "sweep.json"


class TrialRecord(BaseModel):
    """One trial.

    Args:
        number: Place in the order of proposals.
        parameters: What was searched.
        status: ``finished`` (full training), ``stopped`` (by the scheduler), ``failed`` or ``unfinished``.
        reason: Why it failed.
        budget: Units of training done.
        seconds: Wall time of its training.
        metrics: Figures of its last stage.
        history: Budget, seconds and figures of each stage.
        key: Names its stages in the store.
    """

    number: int
    parameters: dict[str, Any]
    status: Literal["finished", "stopped", "failed", "unfinished"]
    reason: str | None = None
    budget: int = 0
    seconds: float = 0.0
    metrics: dict[str, float] = {}
    history: list[dict[str, float]] = []
    key: str = ""


class SweepResult(BaseModel):
    """A whole sweep.

    Args:
        config: Its YAML, complete.
        trials: In the order of their numbers.
        members: Numbers of the trials that the ensemble is made of.
        ensemble: Where it was published; None when the sweep makes none.
        ensemble_metrics: What was measured on it.
        wall_seconds: Of the run that ended here; ``search_seconds`` of it went into the trials.
        inputs: Content hashes of the data.
    """

    config: SweepConfig
    trials: list[TrialRecord]
    members: list[int] = []
    ensemble: str | None = None
    ensemble_metrics: dict[str, Any] = {}
    wall_seconds: float = 0.0
    search_seconds: float = 0.0
    inputs: dict[str, str] = {}

    def ranked(self) -> list[TrialRecord]:
        """Fully trained trials, best first by the first metric."""
        metric = self.config.metric
        done = [t for t in self.trials if t.status == "finished"]
        return sorted(done, key=lambda t: (signed(t, metric), t.number))

    def default(self) -> TrialRecord | None:
        """The trial with the values of ``base`` alone, where there is one that got to the end."""
        return next((t for t in self.trials if not t.parameters and t.status == "finished"), None)


def signed(trial: TrialRecord, metric: MetricConfig) -> float:
    """The metric so that lower is better."""
    value = trial.metrics.get(metric.name, math.nan)
    return value if metric.mode == "min" else -value


def pareto_front(points: Sequence[Sequence[float]]) -> list[int]:
    """Indices of the points that no other beats in all coordinates (lower is better).

    >>> pareto_front([(1, 2), (2, 1), (2, 2)])
    [0, 1]
    """

    def beaten(i: int) -> bool:
        return any(
            all(a <= b for a, b in zip(other, points[i], strict=True)) and tuple(other) != tuple(points[i])
            for other in points
        )

    return [i for i in range(len(points)) if not beaten(i)]


def write_result(result: SweepResult, out: str) -> None:
    """Write ``sweep.json`` into the sweep's folder."""
    write_text(f"{out}/{RESULT}", result.model_dump_json(indent=2))


def read_result(out: str) -> SweepResult:
    """Read ``sweep.json``.

    Raises:
        PreplayError: When it is missing or damaged.
    """
    fs, path = fsspec.core.url_to_fs(f"{out}/{RESULT}")
    if not fs.exists(path):
        raise PreplayError("no finished sweep here.", where=out, fix="Run `preplay sweep` first.")
    try:
        return SweepResult.model_validate(json.loads(fs.cat_file(path)))
    except (ValidationError, ValueError) as error:
        raise PreplayError(f"the result is damaged ({error}).", where=f"{out}/{RESULT}") from error


def write_text(uri: str, text: str) -> None:
    """Write a whole file, or none."""
    fs, path = fsspec.core.url_to_fs(uri)
    fs.makedirs(path.rsplit("/", 1)[0], exist_ok=True)
    fs.pipe_file(f"{path}.part", text.encode())
    fs.mv(f"{path}.part", path)
