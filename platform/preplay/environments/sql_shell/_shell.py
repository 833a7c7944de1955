"""Questions over databases: a query is executed on sqlite3 and compared with the right one."""

import json
import sqlite3
import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from preplay.environments.sql_shell._dialect import to_sqlite
from preplay.environments.sql_shell._dump import load_dump

_QUESTIONS, _DUMP = "ic_spider_dev.json", "ic_spider_dbs.sql"
_STEPS_BETWEEN_CHECKS = 10_000
_MAX_ROWS = 5000


@dataclass(frozen=True)
class Question:
    """One question; ``number`` is its place in the file, which the logs' task ids name."""

    number: int
    database: str
    text: str
    gold: str


@dataclass(frozen=True)
class QueryResult:
    """Rows, or why there are none."""

    rows: tuple[tuple[Any, ...], ...]
    error: str | None = None


class SqlShell:
    """InterCode's SQL questions on sqlite3.

    Args:
        folder: With ``environment/ic_spider_dbs.sql`` and ``environment/ic_spider_dev.json``.
        steps: Virtual-machine steps a query may take before it is stopped.
    """

    def __init__(self, folder: str | Path, steps: int = 3_000_000):
        environment = Path(folder) / "environment"
        self.databases = load_dump(environment / _DUMP)
        entries = json.loads((environment / _QUESTIONS).read_text(encoding="utf-8"))
        self.questions = [Question(i, q["db"], q["query"], q["gold"]) for i, q in enumerate(entries)]
        self._steps, self._lock = steps, threading.Lock()
        self._known: dict[tuple[str, str], QueryResult] = {}

    def execute(self, database: str, sql: str) -> QueryResult:
        """Run one query; every distinct query of a database runs once."""
        key = (database, sql)
        if key not in self._known:
            with self._lock:
                self._known[key] = self._run(database, sql)
        return self._known[key]

    def solves(self, question: Question, sql: str) -> bool:
        """Whether a query earns reward 1: the rows of the right query, in its order where it asks for one."""
        gold, own = self.execute(question.database, question.gold), self.execute(question.database, sql)
        if gold.error is not None or own.error is not None:
            return False
        return same_rows(own.rows, gold.rows, ordered="order by" in question.gold.lower())

    def playable(self, question: Question) -> bool:
        """Whether the right query runs here."""
        return self.execute(question.database, question.gold).error is None

    def schema(self, database: str) -> dict[str, list[str]]:
        """Tables and their columns, in lower case."""
        connection = self.databases[database]
        tables = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {
            table.lower(): [row[1].lower() for row in connection.execute(f"PRAGMA table_info(`{table}`)")]
            for table in tables
        }

    def _run(self, database: str, sql: str) -> QueryResult:
        connection = self.databases[database]
        budget = [self._steps // _STEPS_BETWEEN_CHECKS]

        def tick() -> int:
            budget[0] -= 1
            return int(budget[0] < 0)

        connection.set_progress_handler(tick, _STEPS_BETWEEN_CHECKS)
        try:
            cursor = connection.execute(to_sqlite(sql, tuple(self.databases)))
            return QueryResult(tuple(map(tuple, cursor.fetchmany(_MAX_ROWS))))
        except (sqlite3.Error, sqlite3.Warning, ValueError, OverflowError, TypeError) as error:
            return QueryResult((), f"{type(error).__name__}: {error}")
        finally:
            connection.set_progress_handler(None, 0)


def same_rows(own: Sequence[tuple[Any, ...]], gold: Sequence[tuple[Any, ...]], *, ordered: bool) -> bool:
    """Equal rows as often as each occurs, in the same order where it matters; numbers are compared to 6 digits."""
    mine, right = list(map(_key, own)), list(map(_key, gold))
    return mine == right if ordered else Counter(mine) == Counter(right)


def _key(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(float(f"{value:.6g}") if isinstance(value, int | float) else value for value in row)
