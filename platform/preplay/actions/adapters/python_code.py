"""Python programs, read by the standard library's parser."""

import ast
import builtins
import re

from preplay.actions._registry import register_adapter
from preplay.actions._types import Call, OutcomeRule, ParsedAction

_BLOCK = re.compile(r"<execute>(.*?)(?:</execute>|\Z)|```(?:python|py)\s*\n(.*?)(?:```|\Z)", re.DOTALL)
_SOLUTION = re.compile(r"<solution>(.*?)(?:</solution>|\Z)", re.DOTALL)
_LINE = re.compile(
    r"^\s*(?:import \w|from [\w.]+ import|def \w+\(|for \w+ in |print\(|\w+\s*=\s*\S|[\w.]+\(.*\)\s*$)"
)
_BUILTIN = set(dir(builtins))
_LONGEST = 200_000


@register_adapter
class PythonAdapter:
    """Calls of the environment's functions; names nobody defined are identifiers, constants are arguments."""

    name = "python"
    description = "Python code (ast), bare or in <execute> or fences"
    outcome_rules = (
        OutcomeRule(r"name '([^']+)' is not defined", "error: unknown name"),
        OutcomeRule(r"No module named '([^']+)'", "error: unknown name"),
        OutcomeRule(r"has no attribute '([^']+)'", "error: unknown name"),
        OutcomeRule(r"SyntaxError|IndentationError", "error: syntax"),
        OutcomeRule(r"Traceback \(most recent call last\)|^\w+(?:Error|Exception)\b", "error: other"),
    )

    def recognise(self, action: str) -> float:
        if "<execute>" in action or "```py" in action or "<solution>" in action:
            return 0.95
        first = action.lstrip().split("\n", 1)[0]
        return 0.6 if _LINE.match(first) and _tree(action) is not None else 0.0

    def parse(self, action: str) -> ParsedAction:
        solutions = tuple(Call("solution", (s.strip(),)) for s in _SOLUTION.findall(action))
        blocks = [a or b for a, b in _BLOCK.findall(action)]
        code = "\n".join(blocks) if blocks else ("" if solutions else action)
        tree = _tree(code)
        if tree is None:
            return ParsedAction((*_guess(code), *solutions), " ".join(code.split())[:_LONGEST], "broken")
        calls = (*_calls(tree), *solutions)
        canonical = "\n".join([_unparse(tree), *(s.arguments[0] for s in solutions)])
        return ParsedAction(calls, canonical, "parsed" if calls else "text")


def _tree(code: str) -> ast.Module | None:
    if len(code) > _LONGEST:
        return None
    try:
        return ast.parse(code.strip("\n"))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _unparse(tree: ast.Module) -> str:
    try:
        return ast.unparse(tree)
    except RecursionError:
        return ast.dump(tree)[:_LONGEST]


def _calls(tree: ast.Module) -> list[Call]:
    """One call per use of a function the program does not define itself, in source order."""
    nodes = list(ast.walk(tree))
    own = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    own |= {n.name for n in nodes if isinstance(n, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef)}
    own |= {n.arg for n in nodes if isinstance(n, ast.arg)}
    lists = _constants_by_name(nodes)
    made = []
    for node in sorted((n for n in nodes if isinstance(n, ast.Call)), key=lambda n: (n.lineno, n.col_offset)):
        name = _name(node.func)
        if not name or name in own or name in _BUILTIN or isinstance(node.func, ast.Attribute):
            continue
        values = [
            v for given in (*node.args, *(k.value for k in node.keywords)) for v in _values(given, lists)
        ]
        made.append(Call(name, tuple(dict.fromkeys(values)), (name,)))
    return made or [Call("code", (), ())] * bool(tree.body)


def _name(function: ast.expr) -> str:
    if isinstance(function, ast.Name):
        return function.id
    return function.attr if isinstance(function, ast.Attribute) else ""


def _values(given: ast.expr, lists: dict[str, list[str]]) -> list[str]:
    """Constants in an argument; a loop variable stands for the constants it runs over."""
    values: list[str] = []
    for node in ast.walk(given):
        if isinstance(node, ast.Constant) and isinstance(node.value, str | int | float):
            values.append(str(node.value))
        elif isinstance(node, ast.Name):
            values += lists.get(node.id, [])
    return values


def _constants_by_name(nodes: list[ast.AST]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for node in nodes:
        if isinstance(node, ast.For) and isinstance(node.target, ast.Name):
            name, value = node.target.id, node.iter
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            name, value = node.targets[0].id, node.value
        else:
            continue
        constants = [
            str(n.value) for n in ast.walk(value) if isinstance(n, ast.Constant) and isinstance(n.value, str)
        ]
        found.setdefault(name, []).extend(constants)
    return found


def _guess(code: str) -> list[Call]:
    """Names that look like calls in a program that does not parse."""
    names = re.findall(r"\b([A-Za-z_]\w*)\(", code[:_LONGEST])
    kept = dict.fromkeys(n for n in names if n not in _BUILTIN)
    return [Call(name, (), (name,)) for name in kept]
