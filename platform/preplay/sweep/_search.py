"""Proposals of configurations, the same for any number of workers and after any restart.

Configuration n depends on the seed, n, and what configurations up to n - lag showed. Ray's own searchers learn from
whatever has come back by now, so that two runs of one sweep differ.
"""

import json
from pathlib import Path
from typing import Any

import optuna
from optuna.study import StudyDirection
from ray.tune.search import Searcher

from preplay.seeding import derive_seed
from preplay.sweep._config import MetricConfig, SearcherConfig
from preplay.sweep._space import Parameters, Space, grid, suggest


class StudySearch(Searcher):
    """A Ray Tune searcher over an Optuna study (TPE, also multi-objective), random draws, or a grid.

    Except in a grid, configuration 0 is the defaults: what all others must beat.
    """

    def __init__(self, config: SearcherConfig, space: Space, metrics: tuple[MetricConfig, ...], seed: int):
        super().__init__(metric=metrics[0].name, mode=metrics[0].mode)
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self._config, self._space, self._metrics, self._seed = config, space, metrics, seed
        self._grid = grid(space) if config.kind == "grid" else []
        directions = [
            StudyDirection.MINIMIZE if m.mode == "min" else StudyDirection.MAXIMIZE for m in metrics
        ]
        self._study = optuna.create_study(directions=directions)
        self._numbers: dict[str, int] = {}
        self._results: dict[int, list[float]] = {}
        self._closed: set[int] = set()
        self._told = 0

    def suggest(self, trial_id: str) -> Any:
        """The next configuration; None while those it depends on are not finished."""
        number = len(self._numbers)
        if number >= (len(self._grid) or self._config.trials):
            return Searcher.FINISHED
        if self._config.kind == "tpe" and not self._tell_up_to(number - self._config.lag):
            return None
        parameters = self._grid[number] if self._grid else self._ask(number)
        self._numbers[trial_id] = number
        return {"number": number, "parameters": parameters}

    def on_trial_result(self, trial_id: str, result: dict) -> None:
        """Remember the last report: a trial that is stopped early counts with it."""
        if trial_id in self._numbers and self._metrics[0].name in result:
            self._results[self._numbers[trial_id]] = [float(result[m.name]) for m in self._metrics]

    def on_trial_complete(self, trial_id: str, result: dict | None = None, error: bool = False) -> None:
        """The trial reports no more; a failed one counts as failed."""
        if result and not error:  # Tune hands a report that stops its trial on here alone
            self.on_trial_result(trial_id, result)
        if (number := self._numbers.get(trial_id)) is not None:
            self._closed.add(number)
            if error:
                self._results.pop(number, None)

    def save(self, checkpoint_path: str) -> None:
        """Write what has been proposed; the study itself is derived from results that come again."""
        Path(checkpoint_path).write_text(json.dumps({"numbers": self._numbers}))

    def restore(self, checkpoint_path: str) -> None:
        """Go on counting where the earlier run stopped."""
        self._numbers = json.loads(Path(checkpoint_path).read_text())["numbers"]

    def _tell_up_to(self, last: int) -> bool:
        """Tell the study about all trials up to this one, in order; False while one of them is not finished."""
        while self._told <= last:
            if self._told not in self._closed:
                return False
            values = self._results.get(self._told)
            state = optuna.trial.TrialState.COMPLETE if values else optuna.trial.TrialState.FAIL
            self._study.tell(self._told, values, state=state)
            self._told += 1
        return True

    def set_search_properties(self, metric: str | None, mode: str | None, config: dict, **spec: Any) -> bool:
        """Everything was given already."""
        return True

    def _ask(self, number: int) -> Parameters:
        seed = derive_seed(self._seed, "proposal", number) % 2**32
        early = self._config.kind == "random" or number < self._config.startup
        self._study.sampler = (
            optuna.samplers.RandomSampler(seed)
            if early
            else optuna.samplers.TPESampler(seed=seed, n_startup_trials=1)
        )
        trial = self._study.ask()
        return suggest(self._space, trial) if number else {}
