"""How well a query is grounded in its question and in what is known about the database."""

import re

from preplay.environments.sql_shell._knowledge import Known
from preplay.environments.sql_shell._names import query_names

GROUNDING = (
    *("explores", "tables", "tables_known", "all_tables_known", "tables_rejected", "tables_in_question"),
    *("columns", "columns_known", "columns_of_tables", "all_columns_of_tables", "columns_rejected"),
    *("columns_in_question", "texts_in_question", "question_covered", "words_missed", "knowledge"),
)
"""Names of the numbers that :func:`grounding` returns."""
_STOP_WORDS = """
    a an the of in on at to for with by from and or not is are was were be that this these those what which who whom
    whose how many much show list find give me their there each every all any have has had do does did number name
    names please return different total than more less least most it its as if i you we they
"""
_STOP = frozenset(_STOP_WORDS.split())


def grounding(sql: str, question: str, known: Known) -> list[float]:
    """Numbers in the order of :data:`GROUNDING`; shares are 1 where there is nothing to share."""
    names = query_names(sql)
    words = question_words(question)
    described = (
        set().union(*(known.columns.get(t, frozenset()) for t in names.tables)) if names.tables else set()
    )
    every = set().union(*known.columns.values()) | known.working if known.columns else set(known.working)
    named = {part for name in names.tables | names.columns for part in _parts(name)}
    named |= {part for text in names.texts for part in question_words(text)}
    linkable = {w for w in words if any(w in _parts(n) for n in every | known.tables)}
    return [
        float(bool(re.match(r"\s*(show|desc|describe)\b", sql, re.I)) or "information_schema" in sql.lower()),
        float(len(names.tables)),
        _share(names.tables, known.tables),
        float(names.tables <= known.tables),
        _share(names.tables, known.rejected, empty=0.0),
        sum(bool(_parts(t) & words) for t in names.tables) / max(1, len(names.tables)),
        float(len(names.columns)),
        _share(names.columns, every),
        _share(names.columns, described),
        float(names.columns <= described),
        _share(names.columns, known.rejected, empty=0.0),
        sum(bool(_parts(c) & words) for c in names.columns) / max(1, len(names.columns)),
        sum(t.lower() in question.lower() for t in names.texts) / len(names.texts) if names.texts else 1.0,
        len(words & named) / max(1, len(words)),
        len(linkable - named) / max(1, len(linkable)),
        min(1.0, len(known.columns) / max(1, len(known.tables))),
    ]


def question_words(text: str) -> frozenset[str]:
    """Words that carry meaning, without their plural s."""
    return frozenset(_stem(w) for w in re.findall(r"[a-z0-9]+", text.lower()) if w not in _STOP)


def _parts(name: str) -> set[str]:
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
    return {_stem(part) for part in re.findall(r"[a-z0-9]+", spaced.replace("_", " "))}


def _stem(word: str) -> str:
    return word[:-1] if len(word) > 3 and word.endswith("s") else word


def _share(names: frozenset[str], among: frozenset[str] | set[str], empty: float = 1.0) -> float:
    return len(names & among) / len(names) if names else empty
