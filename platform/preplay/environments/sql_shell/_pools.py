"""Pools of what the logged models did on each question: their first actions, or their final answers."""

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pyarrow as pa

from preplay.actions import KnowledgeBase
from preplay.environments.sql_shell._grounding import GROUNDING, grounding
from preplay.environments.sql_shell._knowledge import Known, SeenStep, known_without, schema_knowledge
from preplay.environments.sql_shell._shell import QueryResult, Question, SqlShell
from preplay.logs import read_logs

Moment = Literal["first", "final"]
_FENCE = re.compile(r"^```(?:sql)?\s*|\s*```$", re.I)
_QUERY = re.compile(r"\s*(select|with)\b", re.I)


@dataclass(frozen=True)
class QuestionPool:
    """Candidates for one question, one per logged model, and what executing them earns.

    Args:
        question: The question.
        models: Who proposed each candidate.
        candidates: The queries.
        evidence: What may be known about each before one is chosen (:attr:`SqlPools.evidence`).
        votes: Share of the other candidates with the same result; 0 before anything was executed.
        solved: Whether it earns reward 1 when it is executed (never shown).
    """

    question: Question
    models: tuple[str, ...]
    candidates: tuple[str, ...]
    evidence: tuple[tuple[float, ...], ...]
    votes: tuple[float, ...]
    solved: tuple[bool, ...]


@dataclass(frozen=True)
class SqlPools:
    """All pools of one moment; ``evidence`` names the numbers of each candidate."""

    pools: list[QuestionPool]
    models: tuple[str, ...]
    evidence: tuple[str, ...]


class LoggedModels:
    """The seven models' sessions: read once, executed where they are asked for.

    Args:
        shell: Executes their queries.
        folder: With ``logs/<model>/*_10_turns.json``.
    """

    def __init__(self, shell: SqlShell, folder: str | Path):
        files = [str(p) for p in sorted(Path(folder).glob("logs/*/*_10_turns.json"))]
        self.shell, self._sessions = shell, _sessions(read_logs(files, "intercode").turns)
        self.models = tuple(sorted({model for model, _ in self._sessions}))
        self._grounded: dict[tuple[int, int], dict[str, list[list[float]]]] = {}
        self._knowledge = _knowledge(shell, self._sessions)

    def pools(self, moment: Moment) -> SqlPools:
        """Pools of one moment.

        ``first``: first actions, before anything was executed. ``final``: the last query of each session, with its
        result but without its reward. How long a session was is left out: it tells whether it was solved.
        """
        names = (*GROUNDING, *(f"is_{model}" for model in self.models))
        if moment == "final":
            names += ("votes", "failed", "rows", "columns", "empty", "single_value")
        pools = [self._pool(question, moment) for question in self.shell.questions]
        return SqlPools([pool for pool in pools if len(pool.candidates) > 1], self.models, names)

    def sessions(self, question: Question) -> dict[str, list[SeenStep]]:
        """What each model did on a question."""
        number = question.number
        return {m: self._sessions[m, number] for m in self.models if (m, number) in self._sessions}

    def known(self, question: Question) -> Known:
        """What the sessions of the other questions have shown of a question's database."""
        return known_without(self._knowledge, question.database, question.number)

    def grounded(self, question: Question, steps: int) -> dict[str, list[list[float]]]:
        """:data:`GROUNDING` of the first steps of every model; worked out once per question."""
        key = (question.number, steps)
        if key not in self._grounded:
            known = self.known(question)
            self._grounded[key] = {
                model: [grounding(step.action, question.text, known) for step in own[:steps]]
                for model, own in self.sessions(question).items()
            }
        return self._grounded[key]

    def _pool(self, question: Question, moment: Moment) -> QuestionPool:
        own, known = self.sessions(question), self.known(question)
        chosen = {m: query for m, steps in own.items() if (query := _pick(steps, moment))}
        results = (
            [self.shell.execute(question.database, q) for q in chosen.values()] if moment == "final" else []
        )
        votes = _votes(results) if results else [0.0] * len(chosen)
        evidence = []
        for i, (model, query) in enumerate(chosen.items()):
            numbers = [*grounding(query, question.text, known), *(float(model == m) for m in self.models)]
            evidence.append(tuple(numbers + ([votes[i], *_shape(results[i])] if results else [])))
        solved = tuple(self.shell.solves(question, query) for query in chosen.values())
        return QuestionPool(
            question, tuple(chosen), tuple(chosen.values()), tuple(evidence), tuple(votes), solved
        )


def _sessions(turns: pa.Table) -> dict[tuple[str, int], list[SeenStep]]:
    """Steps by (model, question)."""
    sessions: dict[tuple[str, int], list[SeenStep]] = defaultdict(list)
    columns = ("session_id", "policy", "action", "next_observation")
    for row in turns.select(columns).to_pylist():
        question = int(row["session_id"].rsplit("/", 1)[-1])
        sessions[row["policy"], question].append(
            SeenStep(question, _clean(row["action"]), row["next_observation"])
        )
    return sessions


def _knowledge(shell: SqlShell, sessions: dict[tuple[str, int], list[SeenStep]]) -> KnowledgeBase:
    steps: dict[str, list[SeenStep]] = defaultdict(list)
    for (_, number), own in sessions.items():
        steps[shell.questions[number].database] += own
    return schema_knowledge(steps)


def _pick(steps: Sequence[SeenStep], moment: Moment) -> str:
    if moment == "first":
        return steps[0].action
    queries = [step.action for step in steps if _QUERY.match(step.action)]
    return queries[-1] if queries else steps[-1].action


def _votes(results: Sequence[QueryResult]) -> list[float]:
    """Share of the others with the same rows; a query that failed votes for nothing."""
    keys = [None if r.error else r.rows for r in results]
    counts = Counter(keys)
    others = max(1, len(results) - 1)
    return [0.0 if key is None else (counts[key] - 1) / others for key in keys]


def _shape(result: QueryResult) -> list[float]:
    rows = len(result.rows)
    single = rows == 1 and len(result.rows[0]) == 1
    columns = len(result.rows[0]) if rows else 0
    return [
        float(result.error is not None),
        min(rows, 50) / 50,
        min(columns, 10) / 10,
        float(not rows),
        float(single),
    ]


def _clean(action: str) -> str:
    return _FENCE.sub("", action.strip()).strip()
