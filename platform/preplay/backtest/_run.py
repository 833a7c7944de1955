"""Leave one policy out, in a loop within a loop: the inner one chooses and calibrates, the outer one is scored."""

import time
from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from preplay.backtest._baselines import BASELINES, baseline
from preplay.backtest._config import BacktestConfig
from preplay.backtest._features import Features
from preplay.backtest._judge import Table, judge, nested_predictions
from preplay.backtest._predict import ACTIONS_ONLY, candidates, predict
from preplay.backtest._problem import Problem, make_problem
from preplay.backtest._report import BacktestReport, Collect
from preplay.backtest._scores import score
from preplay.backtest._support import FEW, calibrate_limits, measure_support
from preplay.backtest._view import View

NESTED = "chosen (nested)"


def backtest(
    turns: pa.Table,
    config: BacktestConfig | None = None,
    *,
    environment_key: str | None = None,
    groups: Mapping[str, str] | None = None,
    solved_at: float = 1.0,
    embedding: np.ndarray | None = None,
    second_opinions: bool = True,
) -> BacktestReport:
    """Hold out each logged policy in turn, predict it from the others, and compare.

    Args:
        turns: Rows of ``TURN_SCHEMA`` sorted by session and turn, of two or more policies.
        config: Settings.
        environment_key: Field of ``extras`` that names the environment; found by itself when absent.
        groups: Group of a policy (family, prompt variant): policies of a group are held out together.
        solved_at: Reward from which a turn solves its session; the value of a policy is its share of solved ones
            (discounted by ``config.gamma``).
        embedding: float32 [R, D] embeddings of the actions: one more representation to choose from.
        second_opinions: Also score kNN and FQE (of actions alone: chain and FQE), which are not chosen from.
    """
    config = config or BacktestConfig()
    started = time.process_time()
    problem = make_problem(turns, config, environment_key=environment_key, groups=groups, solved_at=solved_at)
    features = Features(problem, embedding)
    notes = [problem.turns.families.sentence(), *problem.leaks.sentences, *_environment_note(problem)]
    if len(set(problem.group)) < 2:
        return _impossible(problem, notes, config.level)
    names = candidates(features, config)
    views = {j: View(features, problem.allies(j)) for j in _policies(problem)}
    outer, seconds = _outer(problem, views, names, config, second_opinions)
    inner = nested_predictions(problem, features, names, config)
    support = {j: measure_support(view, j) for j, view in views.items()}
    found = [
        judge(problem, j, {n: outer[n][j] for n in names}, inner[j], support, config.level) for j in views
    ]
    outer[NESTED] = {j: outer[p.candidate][j] for j, p in zip(views, found, strict=True)}
    scores = [score(problem, name, outer[name], seconds.get(name, 0.0)) for name in outer]
    inside = [
        b.contains(v)
        for p in found
        for b, v in zip(p.fold_bounds, p.fold_logged, strict=True)
        if v is not None
    ]
    return BacktestReport(
        policies=found,
        scores=scores,
        chosen=scores[-1],
        coverage=float(np.mean(inside)),
        width=100 * float(np.mean([b.width for p in found for b in p.fold_bounds])),
        pooled_coverage=float(np.mean([p.bounds.contains(p.logged) for p in found if p.logged is not None])),
        pooled_width=100 * float(np.mean([p.bounds.width for p in found])),
        refused=sum(p.verdict != "estimate" for p in found),
        limits=calibrate_limits(
            list(support.values()),
            [p.support for p in found if p.logged is not None and p.bounds.contains(p.logged)],
        ),
        level=config.level,
        gamma=config.gamma,
        known=config.known,
        collect=_collect(problem, views),
        families=problem.turns.families,
        notes=notes,
        tried=len(names),
        seconds=time.process_time() - started,
    )


def _policies(problem: Problem) -> range:
    return range(len(problem.turns.policies))


def _environment_note(problem: Problem) -> list[str]:
    count = len(problem.turns.environments)
    if not count:
        return ["The logs name no environment: no knowledge base; sessions are split by task."]
    return [f"Knowledge is pooled in {count} environments; whole environments are held out."]


def _outer(
    problem: Problem, views: dict[int, View], names: list[str], config: BacktestConfig, second_opinions: bool
) -> tuple[Table, dict[str, float]]:
    """Every estimator on every left-out policy, and its CPU seconds."""
    table: Table = {}
    seconds: dict[str, float] = {}
    opinions = ("grounding/knn", "grounding/fqe") if config.known == "sessions" else ACTIONS_ONLY
    more = opinions if second_opinions else ()
    for name in [*BASELINES, *more, *names]:
        began = time.process_time()
        table[name] = {}
        for j, view in views.items():
            if name in BASELINES:
                table[name][j] = baseline(name, problem, view.cells, j, view.without)
            else:
                table[name] |= predict(name, view, [j], config, folds=config.folds)
        seconds[name] = time.process_time() - began
    return table, seconds


def _collect(problem: Problem, views: dict[int, View], most: int = 5) -> list[Collect]:
    """Cells that matter to a policy and are thin in the others' logs, by share × the error a thin cell has."""
    found: dict[str, tuple[float, Collect]] = {}
    for j, view in views.items():
        cells = view.cells
        size = len(cells.stages) * len(cells.classes)
        mine = problem.shown_by([j])
        here = np.bincount(cells.cell[mine], minlength=size) / mine.sum()
        others = np.bincount(cells.cell[~problem.rows_of(view.without)], minlength=size)
        gain = here / np.sqrt(others + FEW)
        for cell in np.argsort(-gain)[:most].tolist():
            entry = Collect(
                what=cells.name(cell),
                share=here[cell],
                policy=problem.turns.policies[j],
                support=int(others[cell]),
            )
            if gain[cell] > found.get(entry.what, (0.0, None))[0]:
                found[entry.what] = (float(gain[cell]), entry)
    return [entry for _, entry in sorted(found.values(), key=lambda pair: -pair[0])[:most]]


def _impossible(problem: Problem, notes: list[str], level: float) -> BacktestReport:
    only = ", ".join(problem.turns.policies)
    said = (
        f"The logs hold one policy (or one group) only ({only}): nothing can be left out and predicted from others. "
        "Log at least two, better four, or give labelled sessions of the new policy."
    )
    return BacktestReport(
        policies=[], scores=[], chosen=None, coverage=np.nan, width=np.nan, pooled_coverage=np.nan,
        pooled_width=np.nan, refused=0, limits={}, level=level, families=problem.turns.families,
        notes=[*notes, said], tried=0,
    )  # fmt: skip
