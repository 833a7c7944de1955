"""The sessions that structure is learned from, and the work on them, each piece fit for a Ray task."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from sklearn.decomposition import PCA

from preplay.actions import holds_tool_calls
from preplay.backtest import (
    AskedActions,
    BacktestConfig,
    BacktestReport,
    PolicyBacktest,
    backtest,
    estimate_actions,
    estimate_policy,
)
from preplay.embedding import EmbeddedTurns, load_embedded
from preplay.pipeline._config import StructureConfig
from preplay.pipeline._context import Context
from preplay.pipeline._logged import logged_states, some_sessions
from preplay.policies import ClonedPolicy, Policy
from preplay.seeding import numpy_rng

Known = Literal["sessions", "actions"]
_COMPONENTS = 16
_ALL_OR_NOTHING = 0.95
"""Share of sessions that earn 0 or 1 above which the share of solved sessions is the value."""


@dataclass(frozen=True)
class Logs:
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
    def of(cls, context: Context, policies: Mapping[str, Policy]) -> "Logs":
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

    def solved_some(self, settings: StructureConfig) -> bool:
        """Whether any session to learn from was solved."""
        if not self.others.any():
            return False
        rewards = self.data.select_sessions(self.others).turns["reward"].to_numpy()
        return bool((rewards >= settings.solved_at - 1e-9).any())

    def with_own(self, name: str | None = None) -> EmbeddedTurns:
        """The sessions to learn from, and those of a target policy."""
        return self.data.select_sessions(self.others | self.own[name] if name else self.others)


def structured_logs(context: Context, policies: Mapping[str, Policy]) -> Logs | None:
    """The logs, where most actions are tool calls and some session was solved.

    Plain text, the common case, is told from what is in memory: only others read all sessions once more.
    """
    settings = context.config.evaluation.structure
    if not settings.enabled or not holds_tool_calls(context.data.turns["action"].to_pylist()):
        return None
    logs = Logs.of(context, policies)
    return logs if logs.solved_some(settings) else None


@dataclass(frozen=True)
class Shared:
    """What every task needs."""

    logs: Logs
    config: BacktestConfig
    settings: StructureConfig

    def options(self, data: EmbeddedTurns) -> dict[str, Any]:
        """How these sessions are to be read."""
        here = set(data.session_policy)
        groups = {name: group for name, group in self.settings.groups.items() if name in here}
        key, solved_at = self.settings.environment_key, self.settings.solved_at
        return {"environment_key": key, "solved_at": solved_at, "groups": groups}


def backtest_config(context: Context, logs: Logs) -> BacktestConfig:
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


def run_backtest(shared: Shared, kind: Known) -> BacktestReport:
    data = shared.logs.with_own()
    config = shared.config.model_copy(update={"known": kind})
    return backtest(data.turns, config, embedding=_embedding(data), **shared.options(data))


def run_estimate(shared: Shared, policy: Policy) -> PolicyBacktest:
    if policy.name in shared.logs.own:
        data = shared.logs.with_own(policy.name)
        options = shared.options(data)
        return estimate_policy(data.turns, policy.name, shared.config, embedding=_embedding(data), **options)
    data = shared.logs.with_own()
    asked = ask(data, policy, sessions=shared.settings.asked_sessions, seed=shared.config.seed)
    return run_asked(shared, data, policy.name, asked)


def run_asked(shared: Shared, data: EmbeddedTurns, policy: str, asked: AskedActions) -> PolicyBacktest:
    label = f"{policy} (asked)"  # a logged policy may have the same name
    found = estimate_actions(data.turns, label, asked, shared.config, **shared.options(data))
    return found.model_copy(update={"policy": policy})


def ask(data: EmbeddedTurns, policy: Policy, *, sessions: int, seed: int) -> AskedActions:
    """What a policy would do in every state of some logged sessions."""
    keep = some_sessions(data, sessions, seed)
    states = logged_states(data.select_sessions(keep), policy.reads).before
    actions = policy.act(states, numpy_rng(seed, "asked actions")).actions
    return AskedActions(np.flatnonzero(np.repeat(keep, np.diff(data.session_starts))), actions)
