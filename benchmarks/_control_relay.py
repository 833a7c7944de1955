"""SQL shell, several turns: each turn a critic says which of the seven models takes its next step; all are executed.

Databases are held out as for single choices. Every arm has the same budget of executed actions.
"""

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks._control_arms import train_arms
from benchmarks._control_cells import Cell, cells, summarize
from benchmarks._control_sql import SqlSettings, folds_of
from preplay.critics import ActionEncoder, DecisionState, Scorer, decisions_from_turns
from preplay.environments.sql_shell import LoggedModels, Question, Relay, log_relays
from preplay.seeding import numpy_rng

BUDGET = 5
Choose = Callable[[list[Relay]], list[int]]


def sql_relay(
    models: LoggedModels, seeds: int, folder: Path | None, settings: SqlSettings, *, sessions: int
) -> dict[str, float]:
    """All arms; ``sessions`` are logged per training question."""

    def run(seed: int) -> Cell:
        return _one_seed(models, seed, settings, sessions)

    return summarize(cells(folder, "sql-relay", seeds, run), "best single model", "oracle-K")


def _one_seed(models: LoggedModels, seed: int, settings: SqlSettings, sessions: int) -> Cell:
    questions = models.shell.questions
    fold_of = folds_of([q.database for q in questions], settings.folds, seed)
    turns = log_relays(models, questions, sessions=sessions, budget=BUDGET, seed=seed)
    names = Relay(models, questions[0], BUDGET).evidence_names
    encoder = ActionEncoder(horizon=BUDGET, evidence=names)
    data = decisions_from_turns(turns, encoder)
    rows: dict[str, list[dict[str, float]]] = {}
    for fold in range(settings.folds):
        train = data.select(np.array([fold_of[g] != fold for g in data.group]))
        test = [q for q in questions if fold_of[q.database] == fold]
        known = [q for q in questions if fold_of[q.database] != fold]
        scorers = train_arms(train, seed, steps=settings.steps, members=settings.members)
        arms: dict[str, Choose] = {
            "best single model": _always(_best_single(models, known)),
            "random-K": _random(seed),
            **{name: _scored(scorer, encoder) for name, scorer in scorers.items()},
        }
        for arm, choose in arms.items():
            rows.setdefault(arm, []).append(_play(models, test, choose))
        oracle = float(np.mean([_solvable(models, q) for q in test]))
        rows.setdefault("oracle-K", []).append({"success": oracle, "questions": len(test)})
    return {arm: _over_folds(parts) for arm, parts in rows.items()}


def _play(models: LoggedModels, questions: list[Question], choose: Choose) -> dict[str, float]:
    """All questions side by side, turn by turn."""
    running, solved, turns, times = [Relay(models, q, BUDGET) for q in questions], 0, 0, []
    while running:
        started = time.perf_counter()
        places = choose(running)
        times.append(1000 * (time.perf_counter() - started) / len(running))
        turns += len(running)
        done = [relay.step(place) for relay, place in zip(running, places, strict=True)]
        solved += sum(step.terminated for step in done)
        running = [r for r, s in zip(running, done, strict=True) if not (s.terminated or s.truncated)]
    n = len(questions)
    return {
        "success": solved / n,
        "turns": turns / n,
        "ms a decision, batched": float(np.mean(times)),
        "questions": n,
    }


def _scored(scorer: Scorer, encoder: ActionEncoder) -> Choose:
    def choose(relays: list[Relay]) -> list[int]:
        states = [DecisionState(r.question.text, r.observation, r.turn) for r in relays]
        pools = encoder.encode(
            states, [[a for _, a in r.offers] for r in relays], [r.evidence for r in relays]
        )
        scores = scorer.score(pools).mean
        spans = zip(pools.offsets[:-1], pools.offsets[1:], strict=True)
        return [int(np.argmax(scores[a:b])) for a, b in spans]

    return choose


def _always(model: str) -> Choose:
    """One model acts; where it has nothing left, the first that has."""

    def place(relay: Relay) -> int:
        return next((i for i, (name, _) in enumerate(relay.offers) if name == model), 0)

    return lambda relays: [place(relay) for relay in relays]


def _random(seed: int) -> Choose:
    rng = numpy_rng(seed, "random relay")
    return lambda relays: [int(rng.integers(len(relay.offers))) for relay in relays]


def _best_single(models: LoggedModels, questions: list[Question]) -> str:
    rates = {m: np.mean([_solves(models, q, m) for q in questions]) for m in models.models}
    return max(rates, key=lambda m: rates[m])


def _solvable(models: LoggedModels, question: Question) -> bool:
    """Whether any model alone solves it within the budget."""
    return any(_solves(models, question, model) for model in models.models)


def _solves(models: LoggedModels, question: Question, model: str) -> bool:
    steps = models.sessions(question).get(model, [])[:BUDGET]
    return any(models.shell.solves(question, step.action) for step in steps)


def _over_folds(parts: list[dict[str, float]]) -> dict[str, float]:
    """Means weighted by the questions of each fold."""
    weights = np.array([part["questions"] for part in parts], np.float64)
    return {
        name: float(np.average([part[name] for part in parts], weights=weights))
        for name in parts[0]
        if name != "questions"
    }
