"""Whether code has an answer of its own, or only repeats answers that were known before."""

import ast
from collections.abc import Iterator

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_SAME = ast.Eq | ast.NotEq | ast.In | ast.NotIn | ast.Is | ast.IsNot


def ignores_inputs(module: ast.Module) -> bool:
    """Whether all that the functions do with their parameters is to ask if they equal constants, or look them up.

    So does an empty function, and one that holds the answers to the tests it has seen. Larger and smaller are work of
    one's own (``points >= 90``). A function without parameters says nothing either way; neither does a module of such
    functions.
    """
    constants = _constants(module)
    functions = [node for node in module.body if isinstance(node, _Function) and _parameters(node)]
    return bool(functions) and all(_ignores(function, constants) for function in functions)


def _ignores(function: _Function, constants: set[str]) -> bool:
    parameters = _parameters(function)
    nodes = list(ast.walk(function))
    harmless = {id(name) for node in nodes for name in _held_against_constants(node, constants)}
    used = (n for n in nodes if isinstance(n, ast.Name) and n.id in parameters and id(n) not in harmless)
    return not any(used)


def _parameters(function: _Function) -> set[str]:
    own = function.args
    named = [*own.posonlyargs, *own.args, *own.kwonlyargs, *filter(None, (own.vararg, own.kwarg))]
    return {argument.arg for argument in named}


def _constants(module: ast.Module) -> set[str]:
    """Names that are given a literal, anywhere."""
    assigned = (n for n in ast.walk(module) if isinstance(n, ast.Assign) and _literal(n.value))
    return {target.id for n in assigned for target in n.targets if isinstance(target, ast.Name)}


def _held_against_constants(node: ast.AST, constants: set[str]) -> Iterator[ast.Name]:
    """Names in this node that are held equal to constants, or are keys to look up in one."""
    match node:
        case ast.Compare(left=left, ops=ops, comparators=others) if all(isinstance(op, _SAME) for op in ops):
            open_sides = [side for side in (left, *others) if not _known(side, constants)]
            yield from _names(open_sides[0]) if len(open_sides) == 1 else ()
        case ast.Subscript(value=table, slice=key) if _known(table, constants):
            yield from _names(key)
        case ast.Call(func=ast.Attribute(value=table, attr="get"), args=[key, *_]) if _known(
            table, constants
        ):
            yield from _names(key)
        case ast.Match(subject=subject, cases=cases) if all(_constant_pattern(c.pattern) for c in cases):
            yield from _names(subject)


def _names(node: ast.expr) -> list[ast.Name]:
    """A name, or all of a tuple's or list's elements where they are names."""
    elements = node.elts if isinstance(node, ast.Tuple | ast.List) else [node]
    return [element for element in elements if isinstance(element, ast.Name)]


def _constant_pattern(pattern: ast.pattern) -> bool:
    match pattern:
        case ast.MatchSequence(patterns=parts) | ast.MatchOr(patterns=parts):
            return all(_constant_pattern(part) for part in parts)
        case ast.MatchAs(pattern=None, name=None) | ast.MatchValue() | ast.MatchSingleton():
            return True
    return False


def _known(node: ast.expr, constants: set[str]) -> bool:
    return (isinstance(node, ast.Name) and node.id in constants) or _literal(node)


def _literal(node: ast.expr) -> bool:
    try:
        ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return False
    return True
