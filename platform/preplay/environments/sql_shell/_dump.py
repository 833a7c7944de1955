"""A MySQL dump as sqlite3 databases in memory."""

import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from preplay.environments.sql_shell._dialect import COLLATION, add_functions
from preplay.errors import PreplayError

_DATABASE = re.compile(r"^CREATE DATABASE\s+IF NOT EXISTS\s+`(\w+)`", re.M)
_STATEMENT = re.compile(r"^(CREATE TABLE|INSERT INTO) .*?;$", re.M | re.S)
_KEYS = re.compile(r"^\s*(?:KEY|UNIQUE KEY|CONSTRAINT|FULLTEXT KEY)\b.*$", re.M)
_TEXT_COLUMN = re.compile(
    r"^(\s*`[^`]+`\s+(?:text|longtext|mediumtext|tinytext|varchar\(\d+\)|char\(\d+\)))", re.M | re.I
)


def load_dump(path: Path) -> dict[str, sqlite3.Connection]:
    """Every database of a dump, read-only once it is filled."""
    if not path.exists():
        raise PreplayError(
            "the database dump is missing.", where=str(path), fix="Point to the InterCode-SQL data."
        )
    text = path.read_text(encoding="utf-8")
    starts = [(m[1], m.end()) for m in _DATABASE.finditer(text)]
    ends = [start for _, start in starts[1:]] + [len(text)]
    return {name: _build(text[start:end]) for (name, start), end in zip(starts, ends, strict=True)}


def _build(section: str) -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:", check_same_thread=False)
    add_functions(connection)
    for statement in _statements(section):
        connection.execute(statement)
    connection.commit()
    connection.execute("PRAGMA query_only = ON")
    return connection


def _statements(section: str) -> Iterator[str]:
    for found in _STATEMENT.finditer(section):
        statement = found[0]
        yield _create(statement) if statement.startswith("CREATE") else _insert(statement)


def _create(statement: str) -> str:
    """Columns and primary key; texts compare without case, as MySQL's default collation does."""
    body = statement[: statement.rindex(")") + 1]
    body = re.sub(r"/\*.*?\*/", "", body, flags=re.S)
    body = re.sub(r"\s+(?:CHARACTER SET|COLLATE)\s+\w+", "", body)
    body = re.sub(r"\s+AUTO_INCREMENT|\s+unsigned|\s+COMMENT '[^']*'", "", body)
    body = _TEXT_COLUMN.sub(rf"\1 COLLATE {COLLATION}", _KEYS.sub("", body))
    body = re.sub(r"(`\w+`)\(\d+\)", r"\1", body)
    return re.sub(r",(\s*,)*\s*\)$", "\n)", body)


def _insert(statement: str) -> str:
    return re.sub(r"\\(.)", lambda m: {"n": "\n", "'": "''"}.get(m[1], m[1]), statement)
