"""What past sessions in a database have shown: its tables and columns, names that were rejected; never a reward."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from preplay.actions import Fact, KnowledgeBase
from preplay.environments.sql_shell._names import query_names

_NO_TABLE = re.compile(r"Table '(?:\w+\.)?(\w+)' doesn't exist")
_NO_COLUMN = re.compile(r"Unknown column '(?:\w+\.)?(\w+)'")
_DESCRIBED = re.compile(
    r"\s*(?:describe|desc|show\s+(?:full\s+)?columns\s+(?:from|in))\s+`?(?:\w+`?\.`?)?(\w+)`?", re.I
)
_LISTED = re.compile(r"\s*show\s+(?:full\s+)?tables", re.I)
_TABLE, _COLUMN, _WORKING, _REJECTED = "table", "column", "working", "rejected"


@dataclass(frozen=True)
class SeenStep:
    """One logged step: question, query and what came back."""

    question: int
    action: str
    observation: str


@dataclass(frozen=True)
class Known:
    """A database as known without one question's own sessions, in lower case.

    ``columns`` are those of described tables, ``working`` names in queries that ran, ``rejected`` names in errors.
    """

    tables: frozenset[str]
    columns: dict[str, frozenset[str]]
    working: frozenset[str]
    rejected: frozenset[str]


def schema_knowledge(steps: Mapping[str, Iterable[SeenStep]]) -> KnowledgeBase:
    """What the sessions in each database have shown; each question is a source of its own."""
    return KnowledgeBase.of(
        Fact(database, kind, term, str(step.question))
        for database, seen in steps.items()
        for step in seen
        for kind, term in _shown(step)
    )


def known_without(base: KnowledgeBase, database: str, question: int) -> Known:
    """What the sessions of the other questions have shown of a database."""
    facts = base.facts(database, without=(str(question),)) if database in base.environments else {}
    columns: dict[str, set[str]] = defaultdict(set)
    for name in facts.get(_COLUMN, []):
        table, _, column = name.partition(".")
        columns[table].add(column)
    working = frozenset(facts.get(_WORKING, []))
    return Known(
        tables=frozenset(facts.get(_TABLE, [])) | frozenset(columns),
        columns={table: frozenset(names) for table, names in columns.items()},
        working=working,
        rejected=frozenset(facts.get(_REJECTED, [])) - working,
    )


def _shown(step: SeenStep) -> Iterator[tuple[str, str]]:
    """Kind and term of each fact; a column is written ``table.column``."""
    if step.observation.startswith("Error"):
        for pattern in (_NO_TABLE, _NO_COLUMN):
            yield from ((_REJECTED, name.lower()) for name in pattern.findall(step.observation))
    elif _LISTED.match(step.action):
        yield from ((_TABLE, str(row[0]).lower()) for row in _rows(step.observation))
    elif described := _DESCRIBED.match(step.action):
        table = described[1].lower()
        yield from ((_COLUMN, f"{table}.{row[0]}".lower()) for row in _rows(step.observation))
    else:
        used = query_names(step.action)
        yield from ((_WORKING, name) for name in used.tables | used.columns)
        if step.observation:
            yield from ((_TABLE, name) for name in used.tables)


def _rows(observation: str) -> list[tuple]:
    try:
        rows = ast.literal_eval(observation)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return []
    return [row for row in rows if isinstance(row, tuple) and row] if isinstance(rows, list) else []
