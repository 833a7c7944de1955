"""Fitted Q evaluation on structured features, the target's next actions cloned from its sessions by retrieval."""

from collections.abc import Callable

import numpy as np

from preplay.backtest._config import BacktestConfig
from preplay.backtest._view import Prediction, View, splits
from preplay.seeding import numpy_rng

_RIDGE = 1e-2


def fitted_q(view: View, target: int, config: BacktestConfig, *, folds: int) -> Prediction:
    """Q of a policy by linear fitted Q evaluation; its value is the mean Q of its first actions.

    Q(s, a) = chance to solve now + gamma × (1 - chance that it ends) × Q(s', a'), a' drawn from what the target
    did in the same stage in other environments.
    """
    problem = view.features.problem
    x, width = view.of("grounding"), view.features.blocks.state.shape[1]
    follows = np.append(np.diff(problem.turns.session) == 0, False)
    horizon = problem.budget(target)
    values, weights = np.full(problem.folds, np.nan), np.zeros(problem.folds)
    for train, test in splits(view, [target], folds):
        rng = numpy_rng(config.seed, "fitted q", target, len(train))
        if len(train) > config.rows:
            train = np.sort(rng.choice(train, config.rows, replace=False))
        own = np.setdiff1d(np.flatnonzero(problem.shown_by([target])), test)
        after = train[follows[train]]
        chosen = _retrieve(view.cells.stage[after + 1], view.cells.stage, own if len(own) else test, rng)
        following = np.column_stack([x[after + 1, :width], x[chosen, width:]])
        q = _iterate(x[train], problem.success[train], following, follows[train], horizon, problem.gamma)
        for f in np.unique(problem.fold[test]):
            begin = test[(problem.turns.turn[test] == 0) & (problem.fold[test] == f)]
            values[f], weights[f] = float(q(x[begin]).mean()), len(begin)
    return Prediction(float(np.nansum(values * weights) / weights.sum()), values)


def _retrieve(
    stage: np.ndarray, stages: np.ndarray, rows: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """int64 [N]: for each stage a row of the target in the same stage, any row where it never was there."""
    order = rows[np.argsort(stages[rows], kind="stable")]
    sorted_stage = stages[order]
    low, high = np.searchsorted(sorted_stage, stage), np.searchsorted(sorted_stage, stage, side="right")
    draw = rng.random(len(stage))
    inside = low + (draw * (high - low)).astype(np.int64)
    anywhere = (draw * len(order)).astype(np.int64)
    return order[np.where(high > low, inside, anywhere)]


def _iterate(
    x: np.ndarray, reward: np.ndarray, following: np.ndarray, follows: np.ndarray, horizon: int, gamma: float
) -> Callable[[np.ndarray], np.ndarray]:
    mean, spread = x.mean(0), x.std(0)
    spread = np.where(spread > 1e-9, spread, 1.0)

    def place(rows: np.ndarray) -> np.ndarray:
        return np.column_stack([(rows - mean) / spread, np.ones(len(rows))])

    here, there = place(x), place(following)
    gram = here.T @ here + _RIDGE * len(here) * np.eye(here.shape[1])
    solve = np.linalg.solve(gram, here.T)
    beta = np.zeros(here.shape[1])
    for _ in range(horizon):
        goal = reward.copy()
        goal[follows] += gamma * np.clip(there @ beta, 0, 1)
        beta = solve @ goal
    return lambda rows: np.clip(place(rows) @ beta, 0, 1)
