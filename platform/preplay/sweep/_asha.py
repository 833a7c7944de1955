"""Successive halving whose decisions depend on the trials' numbers, never on their timing.

Trial n goes on behind a stage if it is among the best 1 / reduction of the trials 0..n that got there (Li et al. 2020
compare with whatever has come back by now). It is paused, and its slot given away, until all earlier trials have
either reported there or ended. So a sweep is the same on one worker or on a hundred, and after any restart.
"""

import math
from typing import Any

from ray.tune.experiment import Trial
from ray.tune.schedulers import FIFOScheduler, TrialScheduler

from preplay.sweep._config import MetricConfig


class OrderedHalving(FIFOScheduler):
    """A Ray Tune scheduler; trials report ``budget`` and carry ``number`` in their configuration."""

    def __init__(self, metric: MetricConfig, budget: int, reduction: int):
        super().__init__()
        self._metric = metric.name  # Ray's progress output asks for it
        self._sign = 1.0 if metric.mode == "min" else -1.0
        self._budget, self._reduction = budget, reduction
        self._values: dict[int, dict[int, float]] = {}

    def set_search_properties(self, metric: str | None, mode: str | None, **spec: Any) -> bool:
        """Metric and mode were given already."""
        return True

    def on_trial_result(self, tune_controller: Any, trial: Trial, result: dict) -> str:
        """Go on, stop, or pause until earlier trials have been here."""
        value = float(result[self._metric]) * self._sign  # pyright: ignore[reportArgumentType]
        self._values.setdefault(number_of(trial), {})[result["budget"]] = value
        return self._decide(tune_controller, trial, result["budget"])

    def choose_trial_to_run(self, tune_controller: Any) -> Trial | None:
        """Paused trials that may go on, the earliest first; then new ones. Stops those that may not."""
        trials = sorted(tune_controller.get_trials(), key=number_of)
        for trial in (t for t in trials if t.status == Trial.PAUSED and not t.is_saving):
            decision = self._decide(tune_controller, trial, max(self._values[number_of(trial)]))
            if decision == TrialScheduler.CONTINUE:
                return trial
            if decision == TrialScheduler.STOP:
                tune_controller.stop_trial(trial)
        return next((t for t in trials if t.status == Trial.PENDING), None)

    def debug_string(self) -> str:
        """For Ray's log."""
        return f"Ordered halving to 1/{self._reduction} up to {self._budget}"

    def _decide(self, tune_controller: Any, trial: Trial, stage: int) -> str:
        if stage >= self._budget:
            return TrialScheduler.CONTINUE
        rivals, own = [], self._values[number_of(trial)][stage]
        for other in tune_controller.get_trials():
            if number_of(other) >= number_of(trial):
                continue
            value = self._values.get(number_of(other), {}).get(stage)
            if value is None and not other.is_finished():
                return TrialScheduler.PAUSE
            rivals += [] if value is None else [value]
        better = sum(value <= own for value in rivals)
        places = math.ceil((len(rivals) + 1) / self._reduction)
        return TrialScheduler.CONTINUE if better < places else TrialScheduler.STOP


def number_of(trial: Trial) -> int:
    """The trial's place in the order of proposals."""
    return trial.config["number"]
