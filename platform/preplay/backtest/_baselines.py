"""What anybody would guess without a model: the mean of the logs, the most similar policy, the tasks' difficulty."""

from collections.abc import Sequence

import numpy as np

from preplay.backtest._cells import Cells
from preplay.backtest._problem import Problem
from preplay.backtest._view import Prediction

BASELINES = ("mean of logs", "nearest policy", "task difficulty")


def baseline(name: str, problem: Problem, cells: Cells, target: int, without: tuple[str, ...]) -> Prediction:
    """Predict a policy from the values of the others."""
    others = [p for p, n in enumerate(problem.turns.policies) if n not in without]
    if name == "nearest policy":
        others = [min(others, key=lambda p: _distance(problem, cells, p, target))]
    if name == "task difficulty":
        return _difficulty(problem, others, target)
    folds = [_mean([problem.value(p, f) for p in others]) for f in range(problem.folds)]
    return Prediction(float(np.mean([problem.value(p) for p in others])), np.array(folds))


def _mean(values: list[float]) -> float:
    known = [v for v in values if np.isfinite(v)]
    return float(np.mean(known)) if known else np.nan


def _distance(problem: Problem, cells: Cells, one: int, other: int) -> float:
    """Total variation between the cells two policies use."""
    size = len(cells.stages) * len(cells.classes)
    shares = []
    for policy in (one, other):
        counts = np.bincount(cells.cell[problem.shown_by([policy])], minlength=size)
        shares.append(counts / max(counts.sum(), 1))
    return float(np.abs(shares[0] - shares[1]).sum() / 2)


def _difficulty(problem: Problem, others: Sequence[int], target: int) -> Prediction:
    """The others' mean on each task the target has sessions of."""
    question = problem.turns.question[problem.first]
    known = np.isin(problem.session_policy, others)
    size = int(question.max()) + 1
    count = np.bincount(question[known], minlength=size)
    total = np.bincount(question[known], problem.returns[known], size)
    mean = total.sum() / max(count.sum(), 1)
    rate = np.where(count > 0, total / np.maximum(count, 1), mean)[question]
    mine = problem.session_policy == target
    folds = [mine & (problem.session_fold == f) for f in range(problem.folds)]
    return Prediction(
        float(rate[mine].mean()), np.array([rate[f].mean() if f.any() else np.nan for f in folds])
    )
