"""The value of a policy whose sessions are logged but not labelled: what the backtest tested, used."""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from preplay.backtest._features import Features
from preplay.backtest._intervals import combine_labelled, interval_of
from preplay.backtest._judge import judge, nested_predictions
from preplay.backtest._predict import BacktestConfig, View, candidates, predict
from preplay.backtest._problem import make_problem
from preplay.backtest._report import PolicyBacktest
from preplay.backtest._support import measure_support
from preplay.errors import PreplayError


def estimate_policy(
    turns: pa.Table,
    policy: str,
    config: BacktestConfig | None = None,
    *,
    environment_key: str | None = None,
    groups: Mapping[str, str] | None = None,
    solved_at: float = 1.0,
    labelled: tuple[int, int] = (0, 0),
) -> PolicyBacktest:
    """Predict a policy from its own sessions without their rewards, and the other policies' with theirs.

    A few sessions or only first turns of the policy are enough; its rewards are overwritten before anything
    is computed.

    Args:
        turns: Rows of ``TURN_SCHEMA`` sorted by session and turn; the policy's among them.
        policy: Whose value is asked for.
        config: Settings; ``horizon`` declares its turn budget.
        environment_key, groups, solved_at: As for :func:`backtest`.
        labelled: ``(solved, sessions)`` of the policy that were labelled after all; combined by shrinkage.
    """
    config = config or BacktestConfig()
    mine = _rows_of(turns, policy)
    problem = make_problem(
        _without_outcomes(turns, mine),
        folds=config.folds,
        environment_key=environment_key,
        groups=groups,
        solved_at=solved_at,
        horizon=config.horizon,
        seed=config.seed,
    )
    features, target = Features(problem), problem.turns.policies.index(policy)
    names = candidates(features, config)
    policies = range(len(problem.turns.policies))
    view = View(features, problem.allies(target))
    if len(view.without) == len(policies):
        raise PreplayError("there is no other policy to learn from.", fix="Add logs of other policies.")
    outer = {name: predict(name, view, [target], config, folds=config.folds)[target] for name in names}
    inner = nested_predictions(problem, features, names, config, target)[target]
    support = {j: measure_support(View(features, problem.allies(j)), j) for j in policies}
    found = judge(problem, target, outer, inner, support, config.level, labelled=False)
    if reason := _wrong_budget(turns["turn"].to_numpy(), mine, config.horizon):
        found = found.model_copy(update={"verdict": "not identified", "reason": reason})
    return _with_labels(found, labelled, config.level)


def _rows_of(turns: pa.Table, policy: str) -> np.ndarray:
    """bool [R]."""
    names = turns["policy"].to_pylist()
    mine = np.array([name == policy for name in names])
    if not mine.any():
        raise PreplayError(
            f"the logs hold no policy {policy!r}.", fix=f"Logged: {', '.join(sorted(set(names)))}."
        )
    return mine


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
        turns = turns.set_column(turns.schema.get_field_index(name), name, pa.array(values))
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
