"""Leave-one-policy-out on real logs: InterCode-SQL, MINT-ALFWorld, tau-bench retail under three harnesses.

The rewards of a left-out policy are used to score its prediction, for nothing else: representation, model and
interval are chosen on the other policies (nested). Environments are held out too. Rows called "actions" know of a
left-out policy only what it would do in each state, as of an agent that never ran. The logs' folder is taken from
PREPLAY_SHARED_DATA, or ``../shared/data`` beside the repository.
"""

import os
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.table import Table

from benchmarks._common import bench_main
from preplay.backtest import (
    BacktestConfig,
    BacktestReport,
    Features,
    View,
    backtest,
    error_draws,
    estimate_policy,
    make_problem,
    predict,
    score,
)
from preplay.estimators import Resampled, compare_resampled
from preplay.logs import read_logs
from preplay.seeding import numpy_rng

ROOT = Path(os.environ.get("PREPLAY_SHARED_DATA", Path(__file__).parent.parent / "../shared/data"))
FOLDERS = {"sql": "intercode-sql", "mint": "mint-alfworld", "tau": "tau-bench-harness-variants"}
ONE_TURN = "gpt-4-1-turns"
DEBUG_SESSIONS, DEBUG_POLICIES = 120, 8
GOALS = {
    "sql pooled": "<= 4",
    "sql worst": "<= 12",
    "sql fold": "<= 6",
    "sql spearman": ">= .9",
    "sql fold coverage": ">= .85",
    "sql fold width": "<= 20",
    "sql refused": "<= 10 %",
    "sql one turn error": "<= 3",
    "mint spearman": ">= .85",
    "mint pooled": "<= 7",
}
EMBEDDING_LENGTH = 300
"""Characters of an action that are embedded."""


def run(preset: str) -> dict[str, float]:
    """All datasets; ``debug`` takes some sessions of each policy and one model per turn."""
    metrics: dict[str, float] = {}
    config = BacktestConfig(learners=("logistic",), rows=3000) if preset == "debug" else BacktestConfig()
    for short, folder in FOLDERS.items():
        if not (ROOT / folder).is_dir():
            print(f"{folder} is not there: set PREPLAY_SHARED_DATA", file=sys.stderr)
            continue
        turns = read_logs([str(ROOT / folder)]).turns
        if preset == "debug":
            turns = _some(turns)
        metrics |= _backtest(short, turns, config)
        if preset == "full":
            actions = config.model_copy(update={"known": "actions"})
            metrics |= _backtest(f"{short} actions", turns, actions)
        if preset == "full" and short != "tau":
            _embedding_only(short, turns, config)
        if short == "sql":
            metrics |= _one_turn(turns, config)
    return metrics


def _backtest(short: str, turns: pa.Table, config: BacktestConfig) -> dict[str, float]:
    report = backtest(_ten_turns(turns), config)
    _show(short, report)
    chosen = report.chosen
    assert chosen is not None
    known = {"pooled": chosen.pooled, "worst": chosen.worst, "fold": chosen.fold, "spearman": chosen.spearman}
    known |= {"regret at 1": chosen.regret, "fold coverage": report.coverage, "fold width": report.width}
    known |= {"pooled coverage": report.pooled_coverage, "pooled width": report.pooled_width}
    known |= {
        "refused": report.refused / len(report.policies),
        "candidates": report.tried,
        "CPU s": report.seconds,
    }
    known |= _pairs(report)
    return {f"{short} {name}": float(value) for name, value in known.items()}


def _pairs(report: BacktestReport) -> dict[str, float]:
    """Differences of every two left-out policies with an estimate, as ``preplay compare`` reports them."""
    judged = {p.policy: p for p in report.policies if p.verdict == "estimate" and p.logged is not None}
    if len(judged) < 2:
        return {}
    draws = {
        name: Resampled(p.predicted, p.predicted + error_draws(p.bounds, 10_000, numpy_rng(0, "pairs", name)))
        for name, p in judged.items()
    }
    found = compare_resampled(draws, level=report.level)
    logged = np.array(
        [(judged[pair.better].logged or 0) - (judged[pair.other].logged or 0) for pair in found]
    )
    low, high = (np.array([getattr(pair.interval, end) for pair in found]) for end in ("low", "high"))
    clear = low > 0
    return {
        "pairs": len(found),
        "pair coverage": float(np.mean((low <= logged) & (logged <= high))),
        "pair width": 100 * float(np.mean(high - low)),
        "pairs clear": float(clear.sum()),
        "clear pairs right": float(np.mean(logged[clear] > 0)) if clear.any() else np.nan,
    }


def _ten_turns(turns: pa.Table) -> pa.Table:
    return turns.filter(pa.array([name != ONE_TURN for name in turns["policy"].to_pylist()]))


def _embedding_only(short: str, turns: pa.Table, config: BacktestConfig) -> None:
    """Sentence embeddings of the actions instead of structure; not among the candidates of the choice."""
    turns = _ten_turns(turns)
    problem = make_problem(turns, config)
    features = Features(problem, _embed(turns))
    for name in ("embedding/logistic", "embedding/boosting"):
        found = {}
        for j in range(len(problem.turns.policies)):
            found |= predict(name, View(features, problem.allies(j)), [j], config, folds=config.folds)
        s = score(problem, name, found, 0.0)
        errors = f"pooled {s.pooled:.1f}, worst {s.worst:.1f}, fold {s.fold:.1f}"
        print(f"{short} {name}: {errors}, Spearman {s.spearman:.2f}")


def _one_turn(turns: pa.Table, config: BacktestConfig) -> dict[str, float]:
    """gpt-4 with a budget of one turn, declared: predicted from the six others, gpt-4's long sessions left out."""
    names = np.array(turns["policy"].to_pylist())
    others = turns.filter(pa.array(names != "gpt-4"))
    declared = config.model_copy(update={"horizon": 1})
    found = estimate_policy(others, ONE_TURN, declared)
    mine = names == ONE_TURN
    sessions = len(set(np.array(turns["session_id"].to_pylist())[mine]))
    logged = float((turns["reward"].to_numpy()[mine] >= 1).sum() / sessions)
    print(found.sentence(), f"(logged {100 * logged:.1f} %)")
    return {"sql one turn error": 100 * abs(found.predicted - logged)}


def _some(turns: pa.Table) -> pa.Table:
    """The sessions of some tasks, the same for every policy, and of some policies."""
    texts = zip(turns["task"].to_pylist(), turns["observation"].to_pylist(), strict=True)
    tasks = [task or first for task, first in texts]
    policies = turns["policy"].to_pylist()
    starts = np.flatnonzero(turns["turn"].to_numpy() == 0)
    distinct = list(dict.fromkeys(tasks[i] for i in starts))
    kept_tasks = set(distinct[:: max(1, len(distinct) // DEBUG_SESSIONS)])
    kept_policies = set(list(dict.fromkeys(policies))[:DEBUG_POLICIES])
    session = np.cumsum(turns["turn"].to_numpy() == 0) - 1
    chosen = np.array([tasks[i] in kept_tasks and policies[i] in kept_policies for i in starts])
    return turns.filter(pa.array(chosen[session]))


def _embed(turns: pa.Table) -> np.ndarray:
    """Embeddings of the actions (their beginning), 32 principal components: float64 [R, 32]."""
    from sklearn.decomposition import PCA

    from preplay.embedding import CachedEncoder, EncoderConfig

    began = time.process_time()
    texts = [action[:EMBEDDING_LENGTH] for action in turns["action"].to_pylist()]
    distinct = list(dict.fromkeys(texts))
    place = {text: i for i, text in enumerate(distinct)}
    vectors = CachedEncoder(EncoderConfig()).encode(distinct)
    small = PCA(32, random_state=0).fit_transform(np.asarray(vectors, np.float64))
    print(f"{len(distinct)} actions embedded in {time.process_time() - began:.0f} CPU s", file=sys.stderr)
    return small[[place[text] for text in texts]]


def _show(short: str, report: BacktestReport) -> None:
    console = Console(width=140)
    scores = Table(title=f"{short}: points of error of left-out policies")
    for column in ("estimator", "pooled", "worst", "fold", "Spearman", "95 %", "regret@1", "CPU s"):
        scores.add_column(column, justify="left" if column == "estimator" else "right")
    for s in report.scores:
        numbers = [f"{v:.1f}" for v in (s.pooled, s.worst, s.fold)]
        between = f"{s.spearman_low:.2f} … {s.spearman_high:.2f}"
        scores.add_row(
            s.estimator, *numbers, f"{s.spearman:.2f}", between, f"{s.regret:.1f}", f"{s.seconds:.1f}"
        )
    policies = Table(title=f"{short}: nested choice per policy")
    for column in ("policy", "predicted", "90 %", "logged", "choice", "verdict"):
        policies.add_column(column, justify="right" if column in ("predicted", "90 %", "logged") else "left")
    for p in report.policies:
        bounds = f"{100 * p.bounds.low:.0f} … {100 * p.bounds.high:.0f}"
        logged = "" if p.logged is None else f"{100 * p.logged:.1f}"
        policies.add_row(p.policy[:40], f"{100 * p.predicted:.1f}", bounds, logged, p.candidate, p.verdict)
    console.print(scores)
    console.print(policies)
    console.print(*report.notes, sep="\n")


if __name__ == "__main__":
    bench_main(run, title="Real logs: leave one policy out", goals=GOALS)
