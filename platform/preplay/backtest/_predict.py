"""Predicted values of left-out policies, per candidate: pooled and per fold of the environments."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from preplay.actions import ground
from preplay.backtest._categorical import CategoricalModel, additive, clone_table, fit_categorical
from preplay.backtest._cells import Cells, make_cells
from preplay.backtest._features import Features, Representation
from preplay.backtest._problem import Problem
from preplay.backtest._rates import Learner, event_rate
from preplay.backtest._value import ended_value, survival_value

_LEAVES = 0.005


class BacktestConfig(BaseModel):
    """How a backtest is run.

    Args:
        folds: Parts of the environments; what is predicted in one is learned in the others.
        nested_folds: The same inside the nested loop that chooses and calibrates; fewer are quicker.
        rows: Training rows per model; more are thinned at random.
        level: Level of the intervals.
        horizon: Declared turn budget of the target; the logs' by default.
        learners: Models per turn that may be chosen, on every representation.
        seed: Of every random draw.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    folds: int = Field(default=5, ge=2)
    nested_folds: int = Field(default=2, ge=2)
    rows: int = Field(default=8000, ge=200)
    level: float = Field(default=0.9, gt=0.5, lt=1)
    horizon: int | None = Field(default=None, ge=1)
    learners: tuple[Learner, ...] = ("logistic", "boosting")
    seed: int = 0


@dataclass(frozen=True)
class Prediction:
    """Predicted share of solved sessions: ``pooled``, and ``folds`` float64 [folds] (NaN: no session there)."""

    pooled: float
    folds: np.ndarray


@dataclass
class View:
    """The logs as seen when some policies are left out: features and cells, made when first needed."""

    features: Features
    without: tuple[str, ...]
    made: dict[Representation, np.ndarray] = field(default_factory=dict)

    def of(self, representation: Representation) -> np.ndarray:
        """float64 [R, F]."""
        if not self.made:
            self.made = self.features.make(self.without)
        return self.made[representation]

    @cached_property
    def cells(self) -> Cells:
        turns = self.features.problem.turns
        return make_cells(turns, ground(turns, self.features.base, without=self.without))


def candidates(features: Features, config: BacktestConfig) -> list[str]:
    """Names of what may be chosen: ``representation/learner`` and the categorical models."""
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
    problem = view.features.problem
    rates = _rates(name, view, targets, config, folds)
    if isinstance(rates, dict):
        return rates
    success, leave = rates
    return {t: _value(problem, success, leave, t, config) for t in targets}


def _value(
    problem: Problem, success: np.ndarray, leave: np.ndarray, target: int, config: BacktestConfig
) -> Prediction:
    mine = problem.turns.policy == target
    parts = [mine & (problem.fold == f) for f in range(problem.folds)]
    return Prediction(
        _one(problem, success, leave, mine, config),
        np.array([_one(problem, success, leave, part, config) for part in parts]),
    )


def _one(
    problem: Problem, success: np.ndarray, leave: np.ndarray, rows: np.ndarray, config: BacktestConfig
) -> float:
    if not rows.any():
        return float("nan")
    turns = problem.turns
    if problem.leaks.stops_at_success:
        return survival_value(success[rows], leave[rows], turns.turn[rows], horizon=problem.horizon)
    last = np.append(np.diff(turns.session) != 0, True)
    return ended_value(success[rows], turns.session[rows], last[rows])


def _rates(name: str, view: View, targets: Sequence[int], config: BacktestConfig, folds: int):
    problem = view.features.problem
    kind, learner = name.split("/")
    if name == "cells/chain":
        return {t: _chain(view, t, config, folds) for t in targets}
    success, leave = np.zeros(len(problem.turns)), np.zeros(len(problem.turns))
    last = np.append(np.diff(problem.turns.session) != 0, True)
    for usable, test in splits(view, targets, folds):
        train = usable if problem.leaks.stops_at_success else usable[last[usable]]
        if kind == "cells":
            success[test], leave[test] = (
                _cell_rate(view, y, train, test) for y in (problem.success, problem.leave)
            )
            continue
        features = view.of(kind)  # type: ignore[arg-type]
        success[test] = event_rate(
            learner, features, problem.success, train, test, most=config.rows, seed=config.seed  # type: ignore[arg-type]
        )  # fmt: skip
        if problem.leaks.stops_at_success and problem.leave[train].mean() > _LEAVES:
            leave[test] = event_rate(
                "logistic", features, problem.leave, train, test, most=config.rows, seed=config.seed
            )
    return success, leave


def splits(view: View, targets: Sequence[int], folds: int):
    """Training and test rows per part of the environments."""
    problem = view.features.problem
    part = problem.fold % folds
    usable = ~problem.rows_of(view.without)
    for f in range(min(folds, problem.folds)):
        test = np.flatnonzero(np.isin(problem.turns.policy, targets) & (part == f))
        if len(test):
            yield np.flatnonzero(usable & (part != f)), test


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
    turns, horizon = problem.turns, problem.horizon
    following = np.where(np.append(np.diff(turns.session) == 0, False), np.append(cells.stage[1:], 0), -1)
    shape = {"stages": len(cells.stages), "classes": len(cells.classes)}
    values, weights = np.full(problem.folds, np.nan), np.zeros(problem.folds)
    for train, test in splits(view, [target], folds):
        model: CategoricalModel = fit_categorical(
            cells.stage[train], cells.action[train], problem.success[train], problem.leave[train],
            following[train], **shape,
        )  # fmt: skip
        own = np.flatnonzero((turns.policy == target) & ~np.isin(np.arange(len(turns)), test))
        table = clone_table(cells.stage[own], cells.action[own], **shape) if len(own) else None
        for f in np.unique(problem.fold[test]):
            begin = test[(turns.turn[test] == 0) & (problem.fold[test] == f)]
            start = np.bincount(cells.cell[begin], minlength=model.success.size).reshape(model.success.shape)
            habits = (
                table if table is not None else clone_table(cells.stage[test], cells.action[test], **shape)
            )
            values[f] = model.value(start / max(start.sum(), 1), habits, horizon)
            weights[f] = len(begin)
    return Prediction(float(np.nansum(values * weights) / weights.sum()), values)
