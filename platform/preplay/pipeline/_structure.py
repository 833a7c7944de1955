"""Target policies judged by the structure of their tool calls, by the method that backtests on the logs chose.

A policy is known by unlabelled sessions of its own (a clone of logged sessions), or by what it would do in logged
states (any other policy: it is asked). Each kind of knowledge has its own backtest on the logged policies.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import numpy as np
import ray
from rich.console import Console

from preplay.artifacts import is_complete, open_artifact, write_artifact
from preplay.backtest import FEW_POLICIES, AskedActions, BacktestReport, PolicyBacktest, error_draws
from preplay.estimators import Estimate, Interval, Resampled
from preplay.pipeline._context import Context
from preplay.pipeline._logged import some_sessions
from preplay.pipeline._structure_tasks import (
    Known,
    Logs,
    Shared,
    backtest_config,
    run_asked,
    run_backtest,
    run_estimate,
    structured_logs,
)
from preplay.policies import Policy
from preplay.seeding import numpy_rng

ESTIMATOR = "structure/1"
METHOD = "backtest"
"""How its intervals are made."""
KIND = "backtest"
_FILE = "report.json"


@dataclass(frozen=True)
class Structured:
    """What was found.

    Args:
        tested: A backtest per kind of knowledge that was needed.
        found: The estimate of each policy by its name.
        known: What each policy is known by.
        is_value: Whether the estimates are values in the unit of the rewards, not only shares of solved sessions.
    """

    tested: dict[Known, BacktestReport]
    found: dict[str, PolicyBacktest]
    known: dict[str, Known]
    is_value: bool

    def estimate(self, policy: str, context: Context) -> Estimate | None:
        """The policy's estimate beside those of the other estimators; None where it has another unit."""
        if not self.is_value or policy not in self.found:
            return None
        found, tested = self.found[policy], self.tested[self.known[policy]]
        level, error = context.config.evaluation.level, found.bounds.error
        support = found.support
        return Estimate(
            policy=policy,
            estimator=ESTIMATOR,
            value=found.predicted if found.verdict == "estimate" else None,
            raw_value=found.predicted,
            standard_error=error if np.isfinite(error) else None,
            interval=Interval(low=found.bounds.low, high=found.bounds.high, level=level, method=METHOD),
            n_sessions=context.batch.n_sessions,
            n_turns=context.batch.n_turns,
            diagnostics={
                "unsupported share": support.unsupported,
                "first actions, AUC": support.first_actions,
                "outcomes that differ": support.outcomes,
                "points of error in the backtest": tested.chosen.pooled if tested.chosen else None,
            },
            verdict=found.verdict,
            reason=found.reason,
            fix=_fix(found, tested),
        )

    def leads(self, policy: str) -> bool:
        """Whether the estimate may be the headline: enough logged policies were left out to know how good it is."""
        return self.is_value and policy in self.found and self._pseudo_targets(policy) >= FEW_POLICIES

    def resampled(self, estimates: Iterable[Estimate], count: int, seed: int) -> dict[str, Resampled]:
        """Draws of each leading estimate's error: Student's t, as wide as the left-out policies were mispredicted.

        Errors of two policies are taken as independent, which is wider than they are where both err alike.
        """
        found = {}
        for estimate in estimates:
            bounds = self.found[estimate.policy].bounds
            if estimate.estimator != ESTIMATOR or estimate.raw_value is None or not np.isfinite(bounds.error):
                continue
            rng = numpy_rng(seed, "structure error", estimate.policy)
            errors = error_draws(bounds, count, rng)
            found[estimate.policy] = Resampled(estimate.raw_value, estimate.raw_value + errors)
        return found

    def _pseudo_targets(self, policy: str) -> int:
        return len(self.tested[self.known[policy]].policies)


def _fix(found: PolicyBacktest, tested: BacktestReport) -> str | None:
    if found.verdict == "estimate":
        return None
    if found.support.missing:
        return f"Collect labelled sessions with: {found.support.missing[0].what}."
    return f"Collect sessions with: {tested.collect[0].what}." if tested.collect else None


def judge_structure(context: Context, policies: Mapping[str, Policy], console: Console) -> Structured | None:
    """Backtest and estimate, each in a Ray task; None where the logs are plain text or nothing in them succeeded.

    Backtests are kept in the cache folder: they depend on the logs and settings only.
    """
    settings, logs = context.config.evaluation.structure, structured_logs(context, policies)
    if logs is None:
        return None
    known: dict[str, Known] = {
        p.name: "sessions" if p.name in logs.own else "actions" for p in policies.values()
    }
    shared = ray.put(Shared(logs, backtest_config(context, logs), settings))
    leave_out: Any = ray.remote(num_cpus=1)(run_backtest)
    estimate: Any = ray.remote(num_cpus=1)(run_estimate)
    with console.status("Leaving out each logged policy, to see how well it is predicted"):
        waiting = {policy.name: estimate.remote(shared, policy) for policy in policies.values()}
        tested: dict[Known, BacktestReport] = {
            kind: _tested(context, logs, kind, lambda kind=kind: ray.get(leave_out.remote(shared, kind)))
            for kind in dict.fromkeys(known.values())
        }
        found = dict(zip(waiting, ray.get(list(waiting.values())), strict=True))
    return Structured(tested, found, known, logs.all_or_nothing)


def judge_asked(context: Context, policy: str, asked: AskedActions) -> Structured | None:
    """The same, in this process, for a policy that was already asked in states of the context's logs."""
    settings, logs = context.config.evaluation.structure, structured_logs(context, {})
    if logs is None:
        return None
    shared = Shared(logs, backtest_config(context, logs), settings)
    tested = _tested(context, logs, "actions", lambda: run_backtest(shared, "actions"))
    data = logs.with_own()
    keep = np.repeat(
        some_sessions(data, settings.asked_sessions, context.config.seed), np.diff(data.session_starts)
    )
    chosen = [i for i, row in enumerate(asked.row) if keep[row]]
    some = AskedActions(asked.row[chosen], [asked.action[i] for i in chosen])
    found = run_asked(shared, data, policy, some)
    return Structured({"actions": tested}, {policy: found}, {policy: "actions"}, logs.all_or_nothing)


def _tested(context: Context, logs: Logs, kind: Known, run: Callable[[], BacktestReport]) -> BacktestReport:
    """The backtest of a kind of knowledge, from the cache where it was made before."""
    settings = context.config.evaluation.structure
    config = {
        "settings": settings.model_dump(mode="json"),
        "backtest": backtest_config(context, logs).model_dump(mode="json"),
        "known": kind,
        "left_out": logs.left_out,
        "preplay": version("preplay"),
    }
    inputs = {"embedded": open_artifact(context.request.data, "embedded").manifest.content_hash}
    key = hashlib.sha256(json.dumps([config, inputs], sort_keys=True).encode()).hexdigest()[:16]
    folder = context.request.cache / "backtests" / key
    if is_complete(folder, KIND, config=config, inputs=inputs):
        return BacktestReport.model_validate_json((folder / _FILE).read_text(encoding="utf-8"))
    report = run()
    with write_artifact(folder, KIND, config=config, inputs=inputs) as staging:
        (staging.path / _FILE).write_text(report.model_dump_json(indent=2), encoding="utf-8")
    return report
