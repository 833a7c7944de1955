"""MySQL as the logged agents wrote it, in words that sqlite3 understands."""

import math
import re
import sqlite3
from collections.abc import Iterator

_PIECES = re.compile(
    r"'(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.|\"\")*\"|`[^`]*`|--[^\n]*|[^'\"`-]+|[-'\"`]", re.S
)
COLLATION = "MYSQL"
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0"}
_SHOW_TABLES = re.compile(r"show\s+(full\s+)?tables\b.*", re.I | re.S)
_DESCRIBE = re.compile(
    r"(?:describe|desc|show\s+(?:full\s+)?columns\s+(?:from|in))\s+`?(?:\w+`?\.`?)?(\w+)`?\s*", re.I
)
_CAST = (
    (re.compile(r"\bas\s+(?:un)?signed(?:\s+integer)?\b", re.I), "as integer"),
    (re.compile(r"\bas\s+decimal\b", re.I), "as real"),
)


def to_sqlite(sql: str, databases: tuple[str, ...] = ()) -> str:
    """A MySQL query for sqlite3: texts in double quotes, escapes, real division, ``database.table``, casts, SHOW."""
    query = sql.strip().rstrip(";").strip()
    if _SHOW_TABLES.fullmatch(query):
        return "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY lower(name)"
    if found := _DESCRIBE.fullmatch(query):
        return f"SELECT name, type, pk FROM pragma_table_info('{found[1]}')"
    return "".join(_translate(query, databases))


def _translate(query: str, databases: tuple[str, ...]) -> Iterator[str]:
    for piece in _PIECES.findall(query):
        if piece[0] in "'\"" and len(piece) > 1:
            text = re.sub(r"\\(.)", lambda m: _ESCAPES.get(m[1], m[1]), piece[1:-1], flags=re.S)
            text = text.replace(piece[0] * 2, piece[0])
            yield "'" + text.replace("'", "''") + "'"
        elif piece[0] == "`" or piece.startswith("--"):
            yield piece
        else:
            yield _plain(piece, databases)


def _plain(piece: str, databases: tuple[str, ...]) -> str:
    for name in databases:
        piece = re.sub(rf"\b{re.escape(name)}\s*\.\s*(?=[A-Za-z_])", "", piece, flags=re.I)
    piece = re.sub(r"/(?!\*)", "* 1.0 /", piece)
    for pattern, replacement in _CAST:
        piece = pattern.sub(replacement, piece)
    return piece


def add_functions(connection: sqlite3.Connection) -> None:
    """MySQL's default collation, and its functions that occur in the logs and that sqlite3 lacks."""
    connection.create_collation(COLLATION, _collate)
    connection.create_function("concat", -1, lambda *a: None if None in a else "".join(map(_text, a)))
    connection.create_function("if", 3, lambda condition, yes, no: yes if condition else no)
    connection.create_function("year", 1, lambda date: _part(date, 0))
    connection.create_function("month", 1, lambda date: _part(date, 1))
    connection.create_function("day", 1, lambda date: _part(date, 2))
    connection.create_function("char_length", 1, lambda text: None if text is None else len(_text(text)))
    connection.create_function("ucase", 1, lambda text: None if text is None else _text(text).upper())
    connection.create_function("lcase", 1, lambda text: None if text is None else _text(text).lower())
    connection.create_function("truncate", 2, lambda x, digits: math.trunc(x * 10**digits) / 10**digits)
    connection.create_function(
        "regexp", 2, lambda pattern, text: text is not None and bool(re.search(pattern, _text(text), re.I))
    )


def _collate(a: str, b: str) -> int:
    """Texts compare without case and without blanks at their ends."""
    left, right = a.rstrip(" ").lower(), b.rstrip(" ").lower()
    return (left > right) - (left < right)


def _text(value: object) -> str:
    return value if isinstance(value, str) else str(value)


def _part(date: object, place: int) -> int | None:
    numbers = re.findall(r"\d+", str(date))
    return int(numbers[place]) if len(numbers) > place else None
