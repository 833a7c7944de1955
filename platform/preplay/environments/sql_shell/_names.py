"""Tables, columns and texts that a query names."""

import re
from dataclasses import dataclass
from functools import lru_cache

_TEXT = re.compile(r"'((?:[^'\\]|\\.|'')*)'|\"((?:[^\"\\]|\\.|\"\")*)\"")
_TABLES = re.compile(
    r"\b(?:from|join|update|into)\s+((?:`?\w+`?\.)?`?\w+`?(?:\s+(?:as\s+)?\w+)?(?:\s*,\s*(?:`?\w+`?\.)?`?\w+`?(?:\s+(?:as\s+)?\w+)?)*)",
    re.I,
)
_ALIAS = re.compile(r"\bas\s+`?(\w+)`?", re.I)
_WORD = re.compile(r"[A-Za-z_]\w*")
_RESERVED_WORDS = """
    select from where group by order having limit join left right inner outer full cross natural on as and or not in
    exists between like union all intersect except distinct count sum avg min max asc desc case when then else end
    null is concat cast year month day using offset with true false if interval date substring length upper lower
    round coalesce ifnull lag over partition row_number rank signed unsigned char regexp replace abs
"""
_RESERVED = frozenset(_RESERVED_WORDS.split())


@dataclass(frozen=True)
class QueryNames:
    """Names in lower case; ``columns`` are all other identifiers that are no aliases."""

    tables: frozenset[str]
    columns: frozenset[str]
    texts: tuple[str, ...]


@lru_cache(maxsize=1 << 15)
def query_names(sql: str) -> QueryNames:
    """Read the names off a query."""
    texts = tuple(a or b for a, b in _TEXT.findall(sql))
    plain = _TEXT.sub(" ", sql)
    tables, aliases = set(), {m.lower() for m in _ALIAS.findall(plain)}
    for group in _TABLES.findall(plain):
        for part in group.split(","):
            words = [w for w in re.findall(r"[\w.]+", part.replace("`", "")) if w.lower() not in _RESERVED]
            if words:
                tables.add(words[0].split(".")[-1].lower())
                aliases |= {w.lower() for w in words[1:]}
    names = {w.lower() for w in _WORD.findall(plain)} - _RESERVED
    return QueryNames(frozenset(tables), frozenset(names - tables - aliases), texts)
