"""The value of a policy that is not labelled: what the backtest tested, used."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from preplay.backtest._config import BacktestConfig
from preplay.backtest._features import Features
from preplay.backtest._intervals import combine_labelled, interval_of
from preplay.backtest._judge import judge, nested_predictions
from preplay.backtest._predict import candidates, predict
from preplay.backtest._problem import Problem, make_problem
from preplay.backtest._report import PolicyBacktest
from preplay.backtest._support import measure_support
from preplay.backtest._view import View
from preplay.errors import PreplayError


@dataclass(frozen=True)
class AskedActions:
    """What a policy would do in N logged states: ``row`` int64 [N] of the turns it was asked in, its N actions."""

    row: np.ndarray
    action: list[str]


def estimate_policy(
    turns: pa.Table,
    policy: str,
    config: BacktestConfig | None = None,
    *,
    environment_key: str | None = None,
    groups: Mapping[str, str] | None = None,
    solved_at: float = 1.0,
    embedding: np.ndarray | None = None,
    labelled: tuple[int, int] = (0, 0),
) -> PolicyBacktest:
    """Predict a policy from its own sessions without their rewards, and the other policies' with theirs.

    A few sessions of the policy are enough; its rewards are overwritten before anything is computed.

    Args:
        turns: Rows of ``TURN_SCHEMA`` sorted by session and turn; the policy's among them.
        policy: Whose value is asked for.
        config: Settings; ``horizon`` declares its turn budget.
        environment_key, groups, solved_at, embedding: As for :func:`backtest`.
        labelled: ``(solved, sessions)`` of the policy that were labelled after all; combined by shrinkage.
    """
    config = config or BacktestConfig()
    mine = _rows_of(turns, policy)
    problem = make_problem(
        _without_outcomes(turns, mine),
        config,
        environment_key=environment_key,
        groups=groups,
        solved_at=solved_at,
    )
    found = _judged(problem, policy, config, embedding)
    if reason := _wrong_budget(turns["turn"].to_numpy(), mine, config.horizon):
        found = found.model_copy(update={"verdict": "not identified", "reason": reason})
    return _with_labels(found, labelled, config.level)


def estimate_actions(
    turns: pa.Table,
    policy: str,
    asked: AskedActions,
    config: BacktestConfig | None = None,
    *,
    environment_key: str | None = None,
    groups: Mapping[str, str] | None = None,
    solved_at: float = 1.0,
) -> PolicyBacktest:
    """Predict a policy that never ran from what it would do in logged states.

    Args:
        turns: Rows of ``TURN_SCHEMA`` sorted by session and turn.
        policy: Its name; not one of the logged policies.
        asked: What it would do; first turns must be among the states.
        config: Settings; ``known`` is taken to be ``actions``.
        environment_key, groups, solved_at: As for :func:`backtest`.
    """
    config = (config or BacktestConfig()).model_copy(update={"known": "actions"})
    if policy in turns["policy"].to_pylist():
        raise PreplayError(
            f"{policy!r} is a logged policy.", fix="Give the policy that was asked another name."
        )
    if not (turns["turn"].to_numpy()[asked.row] == 0).any():
        raise PreplayError(
            "the policy was not asked for any first action.", fix="Ask it at turn 0 of sessions."
        )
    leading, copied = _leading_up(turns, policy, asked)
    problem = make_problem(
        pa.concat_tables([turns, leading]),
        config,
        environment_key=environment_key,
        groups=groups,
        solved_at=solved_at,
        copied=np.append(np.zeros(turns.num_rows, bool), copied),
    )
    return _judged(problem, policy, config, None)


def _judged(
    problem: Problem, policy: str, config: BacktestConfig, embedding: np.ndarray | None
) -> PolicyBacktest:
    features, target = Features(problem, embedding), problem.turns.policies.index(policy)
    names = candidates(features, config)
    policies = range(len(problem.turns.policies))
    view = View(features, problem.allies(target))
    if len(view.without) == len(policies):
        raise PreplayError("there is no other policy to learn from.", fix="Add logs of other policies.")
    outer = {name: predict(name, view, [target], config, folds=config.folds)[target] for name in names}
    inner = nested_predictions(problem, features, names, config, target)[target]
    support = {j: measure_support(View(features, problem.allies(j)), j) for j in policies}
    return judge(problem, target, outer, inner, support, config.level, labelled=False)


def _rows_of(turns: pa.Table, policy: str) -> np.ndarray:
    """bool [R]."""
    names = turns["policy"].to_pylist()
    mine = np.array([name == policy for name in names])
    if not mine.any():
        raise PreplayError(
            f"the logs hold no policy {policy!r}.", fix=f"Logged: {', '.join(sorted(set(names)))}."
        )
    return mine


def _leading_up(turns: pa.Table, policy: str, asked: AskedActions) -> tuple[pa.Table, np.ndarray]:
    """For every asked action the turns before it and itself, as a session of the policy; bool: all but itself."""
    length = turns["turn"].to_numpy()[asked.row].astype(np.int64) + 1
    last = np.cumsum(length) - 1
    rows = np.repeat(asked.row - last, length) + np.arange(length.sum())
    table, copied = turns.take(pa.array(rows)), np.ones(len(rows), bool)
    copied[last] = False
    actions, following = table["action"].to_numpy(zero_copy_only=False).copy(), table["next_observation"]
    actions[last] = asked.action
    changed = {
        "policy": pa.array([policy] * len(rows)),
        "action": pa.array(actions, pa.string()),
        "next_observation": pa.array(np.where(copied, following.to_numpy(zero_copy_only=False), "")),
    }
    for name, values in changed.items():
        field = table.schema.field(name)
        table = table.set_column(table.schema.get_field_index(name), field, values.cast(field.type))
    return _without_outcomes(table, np.ones(len(rows), bool)), copied


def _wrong_budget(turn: np.ndarray, mine: np.ndarray, horizon: int | None) -> str | None:
    """Why the turn budgets cannot be compared: a value under one budget is no value under another."""
    logged, own = (int(turn[rows].max(initial=0)) + 1 for rows in (~mine, mine))
    if horizon is None and own < logged:
        return f"Its longest session has {own} turns, the logs' {logged}: declare its turn budget (horizon)."
    if horizon is not None and horizon > logged:
        return f"Its turn budget is {horizon}, but the logs show at most {logged} turns."
    return None


def _without_outcomes(turns: pa.Table, mine: np.ndarray) -> pa.Table:
    """The table with the policy's rewards set to 0 and its ends to unknown."""
    reward = np.where(mine, 0.0, turns["reward"].to_numpy())
    ended = turns["terminated"].to_numpy(zero_copy_only=False) & ~mine
    for name, values in (("reward", reward), ("terminated", ended)):
        field = turns.schema.field(name)
        turns = turns.set_column(turns.schema.get_field_index(name), field, pa.array(values))
    return turns


def _with_labels(found: PolicyBacktest, labelled: tuple[int, int], level: float) -> PolicyBacktest:
    solved, sessions = labelled
    if not sessions:
        return found
    if not 0 <= solved <= sessions:
        raise PreplayError(f"{solved} of {sessions} labelled sessions cannot be solved.")
    error = found.bounds.error if np.isfinite(found.bounds.error) else 0.5
    value, error = combine_labelled(found.predicted, error, solved, sessions)
    return found.model_copy(update={"predicted": value, "bounds": interval_of(value, error, level)})
