"""Choice, interval and verdict of one policy, from nothing but what predicting the others taught."""

from itertools import combinations

import numpy as np

from preplay.backtest._config import BacktestConfig
from preplay.backtest._features import Features
from preplay.backtest._intervals import calibrated
from preplay.backtest._predict import predict
from preplay.backtest._problem import Problem
from preplay.backtest._report import Bounds, PolicyBacktest
from preplay.backtest._support import Support, calibrate_limits
from preplay.backtest._view import Prediction, View

Table = dict[str, dict[int, Prediction]]
"""Predictions by candidate and policy."""
FEW_POLICIES = 3
"""Pseudo-targets below which nothing says how wrong a prediction is."""


def nested_predictions(
    problem: Problem, features: Features, names: list[str], config: BacktestConfig, target: int | None = None
) -> dict[int, Table]:
    """``[target][candidate][pseudo-target]``: every policy predicted without its own and the target's sessions.

    A pair of policies is left out together and serves both as target. With ``target`` only its pairs are made.
    """
    policies = range(len(problem.turns.policies))
    found: dict[int, Table] = {j: {name: {} for name in names} for j in policies}
    for i, j in combinations(policies, 2):
        without = tuple(dict.fromkeys((*problem.allies(i), *problem.allies(j))))
        same = problem.group[i] == problem.group[j] or len(without) == len(policies)
        if same or (target is not None and target not in (i, j)):
            continue
        view = View(features, without)
        wanted = [i, j] if target is None else [i if j == target else j]
        for name in names:
            for k, made in predict(name, view, wanted, config, folds=config.nested_folds).items():
                found[j if k == i else i][name][k] = made
    return found


def judge(
    problem: Problem,
    j: int,
    outer: dict[str, Prediction],
    inner: Table,
    support: dict[int, Support],
    level: float,
    *,
    labelled: bool = True,
) -> PolicyBacktest:
    """Choose a candidate for policy j, calibrate its interval, and say whether the logs can speak for it.

    Args:
        problem: The logged sessions; rewards of j are looked at only to fill in ``logged``.
        outer: Prediction of j per candidate.
        inner: Predictions of the other policies without j, per candidate.
        support: Of every policy.
        level: Of the intervals.
        labelled: Whether the rewards of j are known.
    """
    names, pseudo = list(outer), list(next(iter(inner.values())))
    chosen = min(names, key=lambda n: _mean_error(problem, inner[n])) if pseudo else names[0]
    others = [i for i in support if problem.group[i] != problem.group[j]]
    held = [support[i] for i in pseudo if _held(problem, i, inner[chosen], level)]
    limits = calibrate_limits([support[i] for i in others], held)
    refusal = support[j].refusal(limits)
    if not refusal and len(pseudo) < FEW_POLICIES:
        refusal = f"Only {len(pseudo)} other policies can be left out to see how wrong this is."
    kept = [i for i in pseudo if not support[i].refusal(limits)] or pseudo
    pooled, parts = _bounds(problem, outer[chosen], {i: inner[chosen][i] for i in kept}, level)
    return PolicyBacktest(
        policy=problem.turns.policies[j],
        logged=problem.value(j) if labelled else None,
        predicted=outer[chosen].pooled,
        bounds=pooled,
        candidate=chosen,
        fold_logged=[_known(problem.value(j, f)) if labelled else None for f in range(problem.folds)],
        fold_predicted=[_known(v) for v in outer[chosen].folds],
        fold_bounds=parts,
        support=support[j],
        verdict="not identified" if refusal else "estimate",
        reason=refusal or "The other policies do what it does, and predict each other.",
    )


def _known(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _held(problem: Problem, i: int, made: dict[int, Prediction], level: float) -> bool:
    """Whether a left-out policy's value lies in the interval that the other left-out ones calibrate."""
    earlier = {k: p for k, p in made.items() if k != i}
    return len(earlier) >= FEW_POLICIES and _bounds(problem, made[i], earlier, level)[0].contains(
        problem.value(i)
    )


def _mean_error(problem: Problem, found: dict[int, Prediction]) -> float:
    return float(np.mean([abs(p.pooled - problem.value(i)) for i, p in found.items()]))


def _bounds(
    problem: Problem, made: Prediction, earlier: dict[int, Prediction], level: float
) -> tuple[Bounds, list[Bounds]]:
    """Interval of the whole and of every part; a part without sessions can be anything."""
    folds = range(problem.folds)
    pooled = np.array([p.pooled for p in earlier.values()])
    logged = np.array([problem.value(i) for i in earlier])
    by_fold = np.array([p.folds for p in earlier.values()]).reshape(len(earlier), problem.folds)
    logged_by_fold = np.array([[problem.value(i, f) for f in folds] for i in earlier]).reshape(by_fold.shape)
    parts = [
        calibrated(float(v), by_fold, logged_by_fold, level=level)
        if np.isfinite(v)
        else Bounds(low=0, high=1, error=np.inf)
        for v in made.folds
    ]
    return calibrated(made.pooled, pooled, logged, level=level), parts
