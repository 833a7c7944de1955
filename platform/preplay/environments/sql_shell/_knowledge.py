"""What past sessions in a database have shown: its tables and columns, names that were rejected; never a reward."""

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from preplay.environments.sql_shell._names import query_names

_NO_TABLE = re.compile(r"Table '(?:\w+\.)?(\w+)' doesn't exist")
_NO_COLUMN = re.compile(r"Unknown column '(?:\w+\.)?(\w+)'")
_DESCRIBED = re.compile(
    r"\s*(?:describe|desc|show\s+(?:full\s+)?columns\s+(?:from|in))\s+`?(?:\w+`?\.`?)?(\w+)`?", re.I
)
_LISTED = re.compile(r"\s*show\s+(?:full\s+)?tables", re.I)


@dataclass(frozen=True)
class SeenStep:
    """One logged step: question, query and what came back."""

    question: int
    action: str
    observation: str


@dataclass
class Evidence:
    """Names that one question's sessions brought up."""

    tables: set[str] = field(default_factory=set)
    columns: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    working: set[str] = field(default_factory=set)
    rejected: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class Known:
    """A database as known without one question's own sessions, in lower case.

    ``columns`` are those of described tables, ``working`` names in queries that ran, ``rejected`` names in errors.
    """

    tables: frozenset[str]
    columns: dict[str, frozenset[str]]
    working: frozenset[str]
    rejected: frozenset[str]


class KnowledgeBase:
    """Knowledge of one database, from the sessions of all its questions."""

    def __init__(self, steps: Iterable[SeenStep]):
        self._of: dict[int, Evidence] = defaultdict(Evidence)
        for step in steps:
            _learn(self._of[step.question], step)
        self._counts = Counter(item for evidence in self._of.values() for item in _items(evidence))

    def without(self, question: int) -> Known:
        """What the other questions' sessions have shown."""
        own = set(_items(self._of[question])) if question in self._of else set()
        items = {item for item, count in self._counts.items() if count > (item in own)}
        columns: dict[str, set[str]] = defaultdict(set)
        for kind, name, table in items:
            if kind == "column":
                columns[table].add(name)
        named = {
            kind: frozenset(n for k, n, _ in items if k == kind) for kind in ("table", "working", "rejected")
        }
        return Known(
            tables=named["table"] | frozenset(columns),
            columns={table: frozenset(names) for table, names in columns.items()},
            working=named["working"],
            rejected=named["rejected"] - named["working"],
        )


def _items(evidence: Evidence) -> list[tuple[str, str, str]]:
    found = [("table", name, "") for name in evidence.tables]
    found += [("column", name, table) for table, names in evidence.columns.items() for name in names]
    found += [("working", name, "") for name in evidence.working]
    return found + [("rejected", name, "") for name in evidence.rejected]


def _learn(evidence: Evidence, step: SeenStep) -> None:
    if step.observation.startswith("Error"):
        for pattern in (_NO_TABLE, _NO_COLUMN):
            evidence.rejected |= {name.lower() for name in pattern.findall(step.observation)}
        return
    if _LISTED.match(step.action):
        evidence.tables |= {str(row[0]).lower() for row in _rows(step.observation)}
    elif found := _DESCRIBED.match(step.action):
        names = {str(row[0]).lower() for row in _rows(step.observation)}
        if names:
            evidence.columns[found[1].lower()] |= names
    else:
        used = query_names(step.action)
        evidence.working |= used.tables | used.columns
        evidence.tables |= used.tables if step.observation else frozenset()


def _rows(observation: str) -> list[tuple]:
    try:
        rows = ast.literal_eval(observation)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return []
    return [row for row in rows if isinstance(row, tuple) and row] if isinstance(rows, list) else []
