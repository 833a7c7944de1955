"""Predicted values of left-out policies, per candidate: pooled and per fold of the environments."""

from collections.abc import Sequence

import numpy as np

from preplay.backtest._categorical import CategoricalModel, additive, clone_table, fit_categorical
from preplay.backtest._config import BacktestConfig
from preplay.backtest._features import Features
from preplay.backtest._fitted_q import fitted_q
from preplay.backtest._problem import Problem
from preplay.backtest._rates import event_rate
from preplay.backtest._value import ended_value, survival_value
from preplay.backtest._view import Prediction, View, splits

_LEAVES = 0.005
ACTIONS_ONLY = ("cells/chain", "grounding/fqe")
"""Models that need no more of a policy than what it would do in logged states."""
MEAN_OF_ACTIONS = "mean of chain and fqe"
"""Their mean, which halves what only one of them gets wrong; two are too few to choose between."""


def candidates(features: Features, config: BacktestConfig) -> list[str]:
    """Names of what may be chosen: ``representation/learner`` and the categorical models."""
    if config.known == "actions":
        return [MEAN_OF_ACTIONS]
    made = [f"{r}/{learner}" for r in features.representations for learner in config.learners]
    return [*made, "cells/additive", "cells/chain"]


def predict(
    name: str, view: View, targets: Sequence[int], config: BacktestConfig, *, folds: int
) -> dict[int, Prediction]:
    """Predict each target from the policies that the view does not leave out, environments held out.

    Args:
        name: A candidate.
        view: Must leave out every target (and whoever is held out with it).
        targets: Policies to predict.
        folds: Number of parts the environments are cut into for learning.
    """
    if name == "cells/chain":
        return {t: _chain(view, t, config, folds) for t in targets}
    if name == "grounding/fqe":
        return {t: fitted_q(view, t, config, folds=folds) for t in targets}
    if name == MEAN_OF_ACTIONS:
        both = [predict(one, view, targets, config, folds=folds) for one in ACTIONS_ONLY]
        return {t: _mean([found[t] for found in both]) for t in targets}
    success, leave = _rates(name, view, targets, config, folds)
    return {t: _value(view.features.problem, success, leave, t) for t in targets}


def _mean(found: list[Prediction]) -> Prediction:
    pooled = float(np.mean([p.pooled for p in found]))
    return Prediction(pooled, np.mean([p.folds for p in found], 0))


def _value(problem: Problem, success: np.ndarray, leave: np.ndarray, target: int) -> Prediction:
    mine = problem.shown_by([target])
    parts = [mine & (problem.fold == f) for f in range(problem.folds)]
    return Prediction(
        _one(problem, success, leave, mine), np.array([_one(problem, success, leave, part) for part in parts])
    )


def _one(problem: Problem, success: np.ndarray, leave: np.ndarray, rows: np.ndarray) -> float:
    if not rows.any():
        return float("nan")
    turns = problem.turns
    if problem.leaks.stops_at_success:
        return survival_value(
            success[rows], leave[rows], turns.turn[rows], horizon=problem.horizon, gamma=problem.gamma
        )
    last = np.append(np.diff(turns.session) != 0, True)
    return ended_value(success[rows] * problem.discount[rows], turns.session[rows], last[rows])


def _rates(
    name: str, view: View, targets: Sequence[int], config: BacktestConfig, folds: int
) -> tuple[np.ndarray, np.ndarray]:
    """float64 [R] each: chance that a turn of the targets solves its session, or ends it unsolved."""
    problem = view.features.problem
    kind, learner = name.split("/")
    success = _event_rates(kind, learner, problem.success, view, targets, config, folds)
    if not problem.leaks.stops_at_success:
        return success, np.zeros(len(success))
    key = (kind, *targets, folds)
    if key not in view.leave:
        view.leave[key] = _event_rates(
            kind, "logistic", problem.leave, view, targets, config, folds, least=_LEAVES
        )
    return success, view.leave[key]


def _event_rates(
    kind: str,
    learner: str,
    event: np.ndarray,
    view: View,
    targets: Sequence[int],
    config: BacktestConfig,
    folds: int,
    *,
    least: float = 0.0,
) -> np.ndarray:
    """float64 [R]: chance of the event in the targets' turns; 0 where it is rarer than ``least`` in training."""
    leaks = view.features.problem.leaks
    last = np.append(np.diff(view.features.problem.turns.session) != 0, True)
    found = np.zeros(len(event))
    for usable, test in splits(view, targets, folds):
        train = usable if leaks.stops_at_success else usable[last[usable]]
        if kind == "cells":
            found[test] = _cell_rate(view, event, train, test)
        elif event[train].mean() > least:
            found[test] = event_rate(
                learner, view.of(kind), event, train, test, most=config.rows, seed=config.seed  # type: ignore[arg-type]
            )  # fmt: skip
    return found


def _cell_rate(view: View, event: np.ndarray, train: np.ndarray, test: np.ndarray) -> np.ndarray:
    cells = view.cells
    shape = len(cells.stages), len(cells.classes)
    size = shape[0] * shape[1]
    count = np.bincount(cells.cell[train], minlength=size).reshape(shape)
    total = np.bincount(cells.cell[train], event[train], size).reshape(shape)
    return additive(total, count)[cells.stage[test], cells.action[test]]


def _chain(view: View, target: int, config: BacktestConfig, folds: int) -> Prediction:
    """Imagined sessions: first actions where the target starts, then its clone from the other environments."""
    problem, cells = view.features.problem, view.cells
    turns, horizon = problem.turns, problem.budget(target)
    following = np.where(np.append(np.diff(turns.session) == 0, False), np.append(cells.stage[1:], 0), -1)
    shape = {"stages": len(cells.stages), "classes": len(cells.classes)}
    values, weights = np.full(problem.folds, np.nan), np.zeros(problem.folds)
    for train, test in splits(view, [target], folds):
        model: CategoricalModel = fit_categorical(
            cells.stage[train], cells.action[train], problem.success[train], problem.leave[train],
            following[train], **shape,
        )  # fmt: skip
        own = np.setdiff1d(np.flatnonzero(problem.shown_by([target])), test)
        table = clone_table(cells.stage[own], cells.action[own], **shape) if len(own) else None
        for f in np.unique(problem.fold[test]):
            begin = test[(turns.turn[test] == 0) & (problem.fold[test] == f)]
            start = np.bincount(cells.cell[begin], minlength=model.success.size).reshape(model.success.shape)
            habits = (
                table if table is not None else clone_table(cells.stage[test], cells.action[test], **shape)
            )
            values[f] = model.value(start / max(start.sum(), 1), habits, horizon, problem.gamma)
            weights[f] = len(begin)
    return Prediction(float(np.nansum(values * weights) / weights.sum()), values)
