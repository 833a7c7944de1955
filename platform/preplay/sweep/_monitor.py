"""The sweep while it runs: a live table of the best trials, and when it will be done."""

import time
from collections.abc import Sequence
from typing import Any

from ray.tune import Callback
from ray.tune.experiment import Trial
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from preplay.sweep._asha import number_of
from preplay.sweep._config import SweepConfig

_SHOWN = 8


class Monitor(Callback):
    """A Ray Tune callback that keeps a table on the console; on a pipe it prints a line per finished trial."""

    def __init__(self, config: SweepConfig, total: int, console: Console):
        self._config, self._total, self._console = config, total, console
        self._started = time.monotonic()
        self._live = (
            Live(console=console, auto_refresh=False, transient=True) if console.is_terminal else None
        )
        self._drawn = 0.0

    def __getstate__(self) -> dict[str, Any]:
        """Tune pickles its callbacks into its own files, and never reads this one back."""
        return {}

    def setup(self, *arguments: Any, **info: Any) -> None:
        """Begin."""
        if self._live:
            self._live.start()

    def on_step_end(self, iteration: int, trials: list[Trial], **info: Any) -> None:
        """Draw again, twice a second at most."""
        if self._live and time.monotonic() - self._drawn > 0.5:
            self._drawn = time.monotonic()
            self._live.update(progress(trials, self._config, self._total, self._elapsed()), refresh=True)

    def on_trial_complete(self, iteration: int, trials: list[Trial], trial: Trial, **info: Any) -> None:
        """Say so where there is no live table."""
        if not self._live:
            self._console.print(
                _line(trial, trials, self._config, self._total), markup=False, highlight=False
            )

    def on_trial_error(self, iteration: int, trials: list[Trial], trial: Trial, **info: Any) -> None:
        """A trial failed for good."""
        self._console.print(f"trial {number_of(trial)} failed", markup=False, highlight=False)

    def on_experiment_end(self, trials: list[Trial], **info: Any) -> None:
        """End."""
        if self._live:
            self._live.stop()

    def _elapsed(self) -> float:
        return time.monotonic() - self._started


def progress(trials: Sequence[Trial], config: SweepConfig, total: int, elapsed: float) -> Group:
    """The best trials so far, and one line: how many are done, and for how long it will go on."""
    metric = config.metric
    table = Table(title=f"{config.name}: {metric.name} ({metric.mode})")
    for column in ("trial", "status", "budget", *(m.name for m in config.metrics), "parameters"):
        table.add_column(column, justify="left" if column in ("status", "parameters") else "right")
    for trial in best_first(trials, config)[:_SHOWN]:
        values = [f"{trial.last_result[m.name]:.4g}" for m in config.metrics]
        shown = " ".join(f"{k}={_short(v)}" for k, v in trial.config["parameters"].items()) or "(defaults)"
        table.add_row(
            str(number_of(trial)), trial.status.lower(), str(trial.last_result["budget"]), *values, shown
        )
    ended = sum(trial.is_finished() for trial in trials)
    failed = sum(trial.status == Trial.ERROR for trial in trials)
    left = f"about {elapsed / ended * (total - ended):,.0f} s to go" if ended else "no trial is done yet"
    line = f"{ended} of {total} trials done, {failed} failed; {elapsed:,.0f} s gone, {left}"
    return Group(table, Text(line))


def best_first(trials: Sequence[Trial], config: SweepConfig) -> list[Trial]:
    """Trials that have reported: the longest trained first, among them the best."""
    metric = config.metric
    sign = 1 if metric.mode == "min" else -1
    reported = [t for t in trials if metric.name in (t.last_result or {})]
    return sorted(reported, key=lambda t: (-t.last_result["budget"], sign * t.last_result[metric.name]))


def _line(trial: Trial, trials: Sequence[Trial], config: SweepConfig, total: int) -> str:
    metric, ended = config.metric.name, sum(t.is_finished() for t in trials)
    result = trial.last_result or {}
    value = f"{metric} {result[metric]:.4g} at budget {result['budget']}" if metric in result else "no report"
    return f"trial {number_of(trial)}: {value} ({ended} of {total} done)"


def _short(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
