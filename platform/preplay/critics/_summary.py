"""What a long action does, read off its structure and not off its first words.

Python is read by its syntax tree, tool calls by their JSON, SQL by its tokens; anything else is text. Nothing is cut:
the last line of a 200 kB action counts like the first.
"""

import ast
import json
import re
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from typing import Any

from preplay.logs import parse_action
from preplay.rewards import ignores_inputs, parse_python

_SQL_START = re.compile(
    r"\s*(select|insert|update|delete|show|describe|desc|with|create|drop|alter|use)\b", re.I
)
_TOKEN = re.compile(r"[A-Za-z_][A-Za-z_0-9]*|\d+(?:\.\d+)?|[^\sA-Za-z_0-9]")
_LOOPS = (ast.For, ast.While, ast.comprehension)
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


@dataclass(frozen=True)
class ActionSummary:
    """The structure of one action.

    Args:
        kind: ``python``, ``tool``, ``sql`` or ``text``.
        parses: Whether the structure could be read.
        tool: Name of the first tool called, else "".
        functions: Functions and classes that are defined.
        calls: What is called (dotted names), with repetition: functions, tools, SQL keywords.
        steps: Statements, tool calls or SQL clauses.
        lines: Lines that are not blank.
        depth: Deepest nesting of blocks.
        loops: Loops and comprehensions.
        literals: Constants, as text.
        ignores_inputs: Code whose functions do nothing with their parameters but hold them against constants.
        tokens: What the hashed features count: node kinds, operators, calls, argument names.
        normal_form: Equal for actions that differ only in names of variables, comments and layout.
    """

    kind: str
    parses: bool
    tool: str = ""
    functions: tuple[str, ...] = ()
    calls: tuple[str, ...] = ()
    steps: int = 0
    lines: int = 0
    depth: int = 0
    loops: int = 0
    literals: tuple[str, ...] = ()
    ignores_inputs: bool = False
    tokens: tuple[str, ...] = field(default=(), repr=False)
    normal_form: str = field(default="", repr=False)


@lru_cache(maxsize=1 << 15)
def summarize(action: str) -> ActionSummary:
    """The structure of an action, whatever it is."""
    text, calls = parse_action(action)
    if calls:
        return _tools(text, [(c.name, c.arguments) for c in calls], action)
    if _SQL_START.match(action):
        return _sql(action)
    if _looks_like_python(action):
        return _python(action)
    words = tuple(w.lower() for w in _TOKEN.findall(action))
    tokens = tuple(f"word:{w}" for w in words)
    return ActionSummary(
        "text", True, steps=len(words), lines=_lines(action), tokens=tokens, normal_form=" ".join(words)
    )


def _looks_like_python(action: str) -> bool:
    marks = re.search(
        r"^\s*(def |class |import |from \w+ import|return\b|for .+ in |if .+:|@\w)|^\w+\s*=", action, re.M
    )
    return marks is not None


def _python(code: str) -> ActionSummary:
    tree = parse_python(code)
    if tree is None:
        words = tuple(f"broken:{w}" for w in _TOKEN.findall(code)[:200])
        return ActionSummary("python", False, lines=_lines(code), tokens=words, normal_form=code)
    nodes = list(ast.walk(tree))
    calls = tuple(_dotted(n.func) for n in nodes if isinstance(n, ast.Call))
    return ActionSummary(
        kind="python",
        parses=True,
        functions=tuple(n.name for n in nodes if isinstance(n, _SCOPES)),
        calls=calls,
        steps=sum(isinstance(n, ast.stmt) for n in nodes),
        lines=_lines(code),
        depth=_depth(tree),
        loops=sum(isinstance(n, _LOOPS) for n in nodes),
        literals=tuple(repr(n.value) for n in nodes if isinstance(n, ast.Constant)),
        ignores_inputs=ignores_inputs(tree),
        tokens=tuple(_node_tokens(nodes)) + tuple(f"call:{c}" for c in calls),
        normal_form=_normal_form(tree),
    )


def _node_tokens(nodes: list[ast.AST]) -> list[str]:
    tokens = [f"node:{type(n).__name__}" for n in nodes if not isinstance(n, ast.expr_context)]
    for node in nodes:
        if isinstance(node, ast.Compare):
            right = node.comparators[0]
            value = repr(right.value) if isinstance(right, ast.Constant) else type(right).__name__
            tokens.append(f"compare:{type(node.ops[0]).__name__}:{value}")
        elif isinstance(node, ast.BinOp | ast.AugAssign):
            tokens.append(f"operate:{type(node.op).__name__}")
        elif isinstance(node, ast.If):
            tokens.append(f"if:{type(node.body[-1]).__name__}:{bool(node.orelse)}")
        elif isinstance(node, ast.Import | ast.ImportFrom):
            tokens += [f"import:{alias.name}" for alias in node.names]
    return tokens


def _normal_form(tree: ast.Module) -> str:
    """The tree with variables numbered in the order of their appearance and without docstrings."""
    stored = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    stored |= {a.arg for a in ast.walk(tree) if isinstance(a, ast.arg)}
    numbers: dict[str, str] = {}
    renamed = ast.parse(ast.unparse(tree))
    for node in ast.walk(renamed):
        if isinstance(node, _SCOPES) and node.body and _is_text(node.body[0]):
            node.body = node.body[1:] or [ast.Pass()]
        if isinstance(node, ast.Name) and node.id in stored:
            node.id = numbers.setdefault(node.id, f"v{len(numbers)}")
        elif isinstance(node, ast.arg):
            node.arg = numbers.setdefault(node.arg, f"v{len(numbers)}")
    return ast.dump(renamed)


def _is_text(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def _dotted(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return (
            f"{_dotted(node.value)}.{node.attr}"
            if isinstance(node.value, ast.Name | ast.Attribute)
            else f".{node.attr}"
        )
    return node.id if isinstance(node, ast.Name) else "?"


def _depth(tree: ast.AST) -> int:
    """Deepest nesting of statements, without recursion: code may be nested as deep as it likes."""
    deepest, stack = 0, [(tree, 0)]
    while stack:
        node, level = stack.pop()
        level += isinstance(node, ast.stmt)
        deepest = max(deepest, level)
        stack += [(child, level) for child in ast.iter_child_nodes(node)]
    return deepest


def _tools(text: str, calls: list[tuple[str, Any]], action: str) -> ActionSummary:
    arguments = [item for _, argument in calls for item in _walk_json(argument)]
    tokens = [f"tool:{name}" for name, _ in calls] + [f"argument:{key}" for key, _ in arguments]
    inner = [summarize(str(value)) for _, value in arguments if isinstance(value, str) and "\n" in value]
    tokens += [token for summary in inner for token in summary.tokens] + [
        f"word:{w.lower()}" for w in _TOKEN.findall(text)
    ]
    return ActionSummary(
        kind="tool",
        parses=all(isinstance(argument, dict | list) for _, argument in calls)
        and all(s.parses for s in inner),
        tool=calls[0][0],
        calls=tuple(name for name, _ in calls) + tuple(c for s in inner for c in s.calls),
        functions=tuple(f for s in inner for f in s.functions),
        steps=len(calls) + sum(s.steps for s in inner),
        lines=_lines(action),
        literals=tuple(str(value) for _, value in arguments),
        ignores_inputs=any(s.ignores_inputs for s in inner),
        tokens=tuple(tokens),
        normal_form=json.dumps(calls, sort_keys=True, ensure_ascii=False, default=str),
    )


def _walk_json(value: Any) -> list[tuple[str, Any]]:
    """Keys and scalar values of nested JSON, dotted, without recursion."""
    found, stack = [], [("", value)]
    while stack:
        key, node = stack.pop()
        if isinstance(node, dict):
            stack += [(f"{key}.{k}".lstrip("."), v) for k, v in node.items()]
        elif isinstance(node, list):
            stack += [(key, v) for v in node]
        else:
            found.append((key, node))
    return found


def _sql(action: str) -> ActionSummary:
    words = [w.lower() for w in _TOKEN.findall(action)]
    keywords = tuple(w for w in words if w in _KEYWORDS)
    literals = tuple(re.findall(r"'([^']*)'|\"([^\"]*)\"", action))
    return ActionSummary(
        kind="sql",
        parses=words.count("(") == words.count(")") and action.count("'") % 2 == 0,
        tool=words[0],
        calls=keywords,
        steps=len(keywords),
        lines=_lines(action),
        depth=max(0, words.count("select") - 1),
        literals=tuple(a or b for a, b in literals),
        tokens=(
            *(f"sql:{w}" for w in keywords),
            *(f"sql:{a}>{b}" for a, b in pairwise(keywords)),
        ),
        normal_form=" ".join(words).rstrip("; "),
    )


_SQL_WORDS = """
    select from where group by order having limit join left right inner outer on as and or not in exists between like
    union intersect except distinct count sum avg min max asc desc show tables describe columns insert update delete
    drop create alter case when null is concat cast = < > * !
"""
_KEYWORDS = frozenset(_SQL_WORDS.split())


def _lines(text: str) -> int:
    return sum(bool(line.strip()) for line in text.splitlines())
