"""SQL statements, read by sqlglot."""

import logging
import re

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from preplay.actions._registry import register_adapter
from preplay.actions._types import Call, OutcomeRule, ParsedAction

_VERBS = "select|with|show|desc|describe|explain|insert|update|delete|create|drop|alter|use|pragma|truncate"
_START = re.compile(rf"\s*(?:```(?:sql|mysql|sqlite)?\s*)?\(?\s*({_VERBS})\b", re.IGNORECASE)
_FENCE = re.compile(r"```(?:\w+)?\s*(.*?)(?:```|$)", re.DOTALL)
_WORD = re.compile(r"[A-Za-z_][\w.]*|\d+")
_LONGEST = 20_000
logging.getLogger("sqlglot").setLevel(logging.ERROR)  # it warns once per dialect statement it keeps as text


@register_adapter
class SqlAdapter:
    """Statements of any dialect; tables and columns are identifiers, literals are arguments."""

    name = "sql"
    description = "SQL statements (sqlglot)"
    outcome_rules = (
        OutcomeRule(r"unknown column '([^']+)'", "error: unknown name"),
        OutcomeRule(r"table '([^']+)' doesn't exist", "error: unknown name"),
        OutcomeRule(r"no such (?:table|column): (\S+)", "error: unknown name"),
        OutcomeRule(r'(?:column|relation) "?([\w.]+)"? does not exist', "error: unknown name"),
        OutcomeRule(r"unknown database '([^']+)'", "error: unknown name"),
        OutcomeRule(r"no sql code was found|format your sql command", "error: no action"),
        OutcomeRule(r"error in your sql syntax|syntax error|every derived table", "error: syntax"),
        OutcomeRule(r"\A\s*error executing query", "error: other"),
        OutcomeRule(r"\A\[\(\s*\(?None,\)\]", "empty"),
    )

    def recognise(self, action: str) -> float:
        return 0.9 if _START.match(action) else 0.0

    def parse(self, action: str) -> ParsedAction:
        text = _unfenced(action).strip().rstrip(";")
        try:
            statements = sqlglot.parse(text[:_LONGEST], read="mysql", error_level=sqlglot.ErrorLevel.RAISE)
            found = [s for s in statements if s is not None]
            calls = tuple(_call(statement, text) for statement in found)
            canonical = "; ".join(s.sql(comments=False) for s in found).lower()
        except (SqlglotError, RecursionError, ValueError):
            return _broken(text)
        if not calls:
            return _broken(text)
        return ParsedAction(calls, canonical, "parsed" if len(text) <= _LONGEST else "partial")


def _unfenced(action: str) -> str:
    fenced = _FENCE.search(action)
    return fenced[1] if fenced else action


def _call(statement: exp.Expr, text: str) -> Call:
    if isinstance(statement, exp.Command) or type(statement).__name__ in ("Show", "Describe", "Use"):
        words = _WORD.findall(text)
        tool = "describe" if words[0].lower() == "desc" else words[0].lower()
        kept = [w for w in words[1:] if w.lower() not in ("tables", "columns", "from", "table", "databases")]
        return Call(tool, (), tuple(dict.fromkeys(w.split(".")[-1].lower() for w in kept)))
    aliases = {
        node.alias.lower() for node in statement.find_all(exp.Alias, exp.TableAlias, exp.Table) if node.alias
    }
    names = [node.name.lower() for node in statement.find_all(exp.Table, exp.Column)]
    values = [str(node.this) for node in statement.find_all(exp.Literal)]
    known = dict.fromkeys(n for n in names if n and n != "*" and n not in aliases)
    return Call(_tool(statement), tuple(dict.fromkeys(values)), tuple(known))


def _tool(statement: exp.Expr) -> str:
    """``select`` with what makes it hard: joins, grouping, nesting, sets."""
    name = type(statement).__name__.lower()
    if not isinstance(statement, exp.Query):
        return name
    kinds = ((exp.Join, "join"), (exp.Group, "group"), (exp.Subquery, "nested"), (exp.SetOperation, "set"))
    shape = [label for kind, label in kinds if statement.find(kind)]
    nested = len(list(statement.find_all(exp.Select))) > 1 and "nested" not in shape
    return " ".join(["select", *shape, *(["nested"] if nested and "set" not in shape else [])])


def _broken(text: str) -> ParsedAction:
    """An unreadable statement still says what it was meant to be."""
    verb = _START.match(text)
    tool = verb[1].lower() if verb else "sql"
    return ParsedAction((Call(tool),), " ".join(text[:_LONGEST].lower().split()), "broken")
