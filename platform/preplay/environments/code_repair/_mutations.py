"""Small faults of a right solution, found systematically: one change at one place of the syntax tree."""

import ast
import copy
from collections.abc import Callable, Iterator

Edit = Callable[[ast.AST], ast.AST | None]
"""Changes a copied node in place and returns it; None where there is nothing to change."""

_COMPARE = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt}
_NEGATE = {ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.In: ast.NotIn, ast.NotIn: ast.In}
_OPERATE = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.FloorDiv: ast.Mod,
    ast.Mod: ast.FloorDiv,
}


def _boundary(node: ast.AST) -> ast.AST | None:
    """< becomes <=, >= becomes > and so on."""
    if isinstance(node, ast.Compare) and type(node.ops[0]) in _COMPARE:
        node.ops[0] = _COMPARE[type(node.ops[0])]()
        return node
    return None


def _shift(by: int) -> Edit:
    def edit(node: ast.AST) -> ast.AST | None:
        if isinstance(node, ast.Constant) and type(node.value) is int:
            node.value += by
            return node
        return None

    return edit


def _range_end(by: int) -> Edit:
    def edit(node: ast.AST) -> ast.AST | None:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "range":
            end = 0 if len(node.args) == 1 else 1
            op = ast.Add() if by > 0 else ast.Sub()
            node.args[end] = ast.BinOp(node.args[end], op, ast.Constant(abs(by)))
            return node
        return None

    return edit


def _operator(node: ast.AST) -> ast.AST | None:
    """+ becomes -, // becomes % and so on."""
    if isinstance(node, ast.BinOp | ast.AugAssign) and type(node.op) in _OPERATE:
        node.op = _OPERATE[type(node.op)]()
        return node
    return None


def _condition(node: ast.AST) -> ast.AST | None:
    """== becomes !=, ``and`` becomes ``or``, ``not x`` becomes x."""
    if isinstance(node, ast.Compare) and type(node.ops[0]) in _NEGATE:
        node.ops[0] = _NEGATE[type(node.ops[0])]()
        return node
    if isinstance(node, ast.BoolOp):
        node.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        return node
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return node.operand
    return None


def _missing_case(node: ast.AST) -> ast.AST | None:
    """An ``if`` without ``else`` that handles a special case is gone."""
    if isinstance(node, ast.If) and not node.orelse and isinstance(node.body[-1], ast.Return | ast.Continue):
        return ast.Pass()
    return None


def _missing_step(node: ast.AST) -> ast.AST | None:
    """A statement that changes a variable is gone."""
    return ast.Pass() if isinstance(node, ast.AugAssign | ast.Expr) else None


FAULTS: dict[str, tuple[Edit, ...]] = {
    "off_by_one": (_boundary, _shift(1), _shift(-1), _range_end(1), _range_end(-1)),
    "wrong_operator": (_operator,),
    "wrong_condition": (_condition,),
    "missing_case": (_missing_case,),
    "missing_step": (_missing_step,),
}


def mutants(source: str, fault: str) -> list[str]:
    """All sources that differ from ``source`` in one fault of this kind, in a fixed order."""
    tree = ast.parse(source)
    nodes = list(ast.walk(tree))
    places = [(i, e) for i, n in enumerate(nodes) for e in FAULTS[fault] if e(copy.deepcopy(n)) is not None]
    found = [_apply(tree, place, edit) for place, edit in places]
    return list(dict.fromkeys(text for text in found if text and text != ast.unparse(tree) + "\n"))


def _apply(tree: ast.Module, place: int, edit: Edit) -> str | None:
    """The source with the edit at the place-th node, None where the rest is no program."""
    changed = copy.deepcopy(tree)
    node = next(n for i, n in enumerate(ast.walk(changed)) if i == place)
    new = edit(node)
    assert new is not None
    if new is not node:
        _replace(changed, node, new)
    try:
        text = ast.unparse(ast.fix_missing_locations(changed)) + "\n"
        ast.parse(text)
    except (SyntaxError, ValueError):
        return None
    return text


def _replace(tree: ast.AST, old: ast.AST, new: ast.AST) -> None:
    for parent, field, index in _slots(tree):
        value = getattr(parent, field)
        if index is None and value is old:
            setattr(parent, field, new)
        elif index is not None and value[index] is old:
            value[index] = new


def _slots(tree: ast.AST) -> Iterator[tuple[ast.AST, str, int | None]]:
    for parent in ast.walk(tree):
        for field, value in ast.iter_fields(parent):
            if isinstance(value, list):
                yield from ((parent, field, i) for i in range(len(value)))
            else:
                yield parent, field, None
