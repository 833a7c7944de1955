"""Target policies judged by the structure of their tool calls, by the method that backtests on the logs chose.

A policy is known by unlabelled sessions of its own (a clone of logged sessions), or by what it would do in logged
states (any other policy: it is asked). Each kind of knowledge has its own backtest on the logged policies.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import ray
from rich.console import Console
from sklearn.decomposition import PCA

from preplay.actions import detect_adapters
from preplay.artifacts import is_complete, open_artifact, write_artifact
from preplay.backtest import (
    FEW_POLICIES,
    AskedActions,
    BacktestConfig,
    BacktestReport,
    PolicyBacktest,
    backtest,
    estimate_actions,
    estimate_policy,
)
from preplay.embedding import EmbeddedTurns, load_embedded
from preplay.estimators import Estimate, Interval
from preplay.pipeline._config import StructureConfig
from preplay.pipeline._context import Context
from preplay.pipeline._logged import logged_states
from preplay.policies import ClonedPolicy, Policy
from preplay.seeding import numpy_rng

Known = Literal["sessions", "actions"]
ESTIMATOR = "structure/1"
KIND = "backtest"
_FILE = "report.json"
_PLAIN = 0.5
"""Share of plain text among the actions above which structure is not looked for."""
_COMPONENTS = 16
_ALL_OR_NOTHING = 0.95
"""Share of sessions that earn 0 or 1 above which the share of solved sessions is the value."""


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
            interval=Interval(low=found.bounds.low, high=found.bounds.high, level=level, method="backtest"),
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
    settings = context.config.evaluation.structure
    logs = _Logs.of(context, policies)
    if not (settings.enabled and logs.speak(settings)):
        return None
    known: dict[str, Known] = {
        p.name: "sessions" if p.name in logs.own else "actions" for p in policies.values()
    }
    shared = ray.put(_Shared(logs, _config(context, logs), settings))
    leave_out, estimate = (ray.remote(num_cpus=1)(task) for task in (_backtest, _estimate))
    with console.status("Leaving out each logged policy, to see how well it is predicted"):
        waiting = {policy.name: estimate.remote(shared, policy) for policy in policies.values()}
        tested = {
            kind: _tested(context, logs, kind, lambda kind=kind: ray.get(leave_out.remote(shared, kind)))
            for kind in dict.fromkeys(known.values())
        }
        found = dict(zip(waiting, ray.get(list(waiting.values())), strict=True))
    return Structured(tested, found, known, logs.all_or_nothing)


def judge_asked(context: Context, policy: str, asked: AskedActions) -> Structured | None:
    """The same, in this process, for a policy that was already asked in states of the context's logs."""
    settings, logs = context.config.evaluation.structure, _Logs.of(context, {})
    if not (settings.enabled and logs.speak(settings)):
        return None
    shared = _Shared(logs, _config(context, logs), settings)
    tested = _tested(context, logs, "actions", lambda: _backtest(shared, "actions"))
    data = logs.with_own()
    keep = np.repeat(_some(data, settings.asked_sessions, context.config.seed), np.diff(data.session_starts))
    chosen = [i for i, row in enumerate(asked.row) if keep[row]]
    some = AskedActions(asked.row[chosen], [asked.action[i] for i in chosen])
    found = _asked(shared, data, policy, some)
    return Structured({"actions": tested}, {policy: found}, {policy: "actions"}, logs.all_or_nothing)


@dataclass(frozen=True)
class _Logs:
    """All sessions, and which of them are whose.

    Args:
        data: Embedded sessions of all policies.
        others: bool [S] sessions to learn from.
        own: bool [S] unlabelled sessions per target policy that has some.
    """

    data: EmbeddedTurns
    others: np.ndarray
    own: dict[str, np.ndarray]

    @classmethod
    def of(cls, context: Context, policies: Mapping[str, Policy]) -> "_Logs":
        """Sessions of cloned targets are left out of those to learn from, whether or not the user says so."""
        data = load_embedded(context.request.data)
        ids = data.turns["session_id"].take(pa.array(data.session_starts[:-1])).to_pylist()
        own = {p.name: np.isin(ids, p.data.session) for p in policies.values() if isinstance(p, ClonedPolicy)}
        own = {name: mine for name, mine in own.items() if (data.session_policy[mine] == name).any()}
        return cls(data, ~np.isin(data.session_policy, [*context.request.without, *own]), own)

    @property
    def left_out(self) -> list[str]:
        return sorted(set(self.data.session_policy[~self.others].tolist()))

    @property
    def all_or_nothing(self) -> bool:
        """Whether nearly all sessions earn 0 or 1, so that the share of solved sessions is their value."""
        returns = np.add.reduceat(self.data.turns["reward"].to_numpy(), self.data.session_starts[:-1])
        return bool(np.isin(returns[self.others], (0, 1)).mean() >= _ALL_OR_NOTHING)

    def speak(self, settings: StructureConfig) -> bool:
        """Whether the actions to learn from are tool calls, and some solved their session."""
        if not self.others.any():
            return False
        table = self.data.select_sessions(self.others).turns
        plain = detect_adapters(table["action"].to_pylist()).shares.get("text", 0.0)
        return plain <= _PLAIN and bool((table["reward"].to_numpy() >= settings.solved_at - 1e-9).any())

    def with_own(self, name: str | None = None) -> EmbeddedTurns:
        """The sessions to learn from, and those of a target policy."""
        return self.data.select_sessions(self.others | self.own[name] if name else self.others)


@dataclass(frozen=True)
class _Shared:
    """What every task needs."""

    logs: _Logs
    config: BacktestConfig
    settings: StructureConfig

    def options(self, data: EmbeddedTurns) -> dict[str, Any]:
        """How these sessions are to be read."""
        here = set(data.session_policy)
        groups = {name: group for name, group in self.settings.groups.items() if name in here}
        key, solved_at = self.settings.environment_key, self.settings.solved_at
        return {"environment_key": key, "solved_at": solved_at, "groups": groups}


def _config(context: Context, logs: _Logs) -> BacktestConfig:
    evaluation = context.config.evaluation
    return BacktestConfig(
        level=evaluation.level,
        horizon=evaluation.structure.horizon,
        learners=evaluation.structure.learners,
        rows=evaluation.structure.rows,
        gamma=context.gamma if logs.all_or_nothing and context.gamma > 0 else 1.0,
        seed=context.config.seed,
    )


def _embedding(data: EmbeddedTurns) -> np.ndarray:
    """Principal components of the embeddings of the actions: float64 [R, at most 16]."""
    distinct, place = np.unique(data.action_id, return_inverse=True)
    vectors = data.bank.embeddings[distinct].astype(np.float64)
    count = min(_COMPONENTS, *vectors.shape)
    return PCA(count, random_state=0).fit_transform(vectors)[place]


def _tested(context: Context, logs: _Logs, kind: Known, run: Callable[[], BacktestReport]) -> BacktestReport:
    """The backtest of a kind of knowledge, from the cache where it was made before."""
    settings = context.config.evaluation.structure
    config = {
        "settings": settings.model_dump(mode="json"),
        "backtest": _config(context, logs).model_dump(mode="json"),
        "known": kind,
        "left_out": logs.left_out,
    }
    inputs = {"embedded": open_artifact(context.request.data, "embedded").manifest.content_hash}
    folder = Path(context.request.cache) / "backtests" / f"{inputs['embedded'][:16]}-{kind}"
    if is_complete(folder, KIND, config=config, inputs=inputs):
        return BacktestReport.model_validate_json((folder / _FILE).read_text(encoding="utf-8"))
    report = run()
    with write_artifact(folder, KIND, config=config, inputs=inputs) as staging:
        (staging.path / _FILE).write_text(report.model_dump_json(indent=2), encoding="utf-8")
    return report


def _backtest(shared: _Shared, kind: Known) -> BacktestReport:
    data = shared.logs.with_own()
    config = shared.config.model_copy(update={"known": kind})
    return backtest(data.turns, config, embedding=_embedding(data), **shared.options(data))


def _estimate(shared: _Shared, policy: Policy) -> PolicyBacktest:
    if policy.name in shared.logs.own:
        data = shared.logs.with_own(policy.name)
        options = shared.options(data)
        return estimate_policy(data.turns, policy.name, shared.config, embedding=_embedding(data), **options)
    data = shared.logs.with_own()
    asked = ask(data, policy, sessions=shared.settings.asked_sessions, seed=shared.config.seed)
    return _asked(shared, data, policy.name, asked)


def _asked(shared: _Shared, data: EmbeddedTurns, policy: str, asked: AskedActions) -> PolicyBacktest:
    label = f"{policy} (asked)"  # a logged policy may have the same name
    found = estimate_actions(data.turns, label, asked, shared.config, **shared.options(data))
    return found.model_copy(update={"policy": policy})


def ask(data: EmbeddedTurns, policy: Policy, *, sessions: int, seed: int) -> AskedActions:
    """What a policy would do in every state of some logged sessions."""
    keep = _some(data, sessions, seed)
    states = logged_states(data.select_sessions(keep), policy.reads).before
    actions = policy.act(states, numpy_rng(seed, "asked actions")).actions
    return AskedActions(np.flatnonzero(np.repeat(keep, np.diff(data.session_starts))), actions)


def _some(data: EmbeddedTurns, sessions: int, seed: int) -> np.ndarray:
    """bool [S]: at most so many sessions."""
    count = len(data.session_starts) - 1
    return np.isin(np.arange(count), numpy_rng(seed, "asked sessions").permutation(count)[:sessions])
