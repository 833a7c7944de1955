"""The same program in other words: equivalent statements, other names, comments that say nothing."""

import ast

import numpy as np

_NAMES = (
    ("value", "other", "item", "result", "index", "count", "left", "right", "part", "temp"),
    ("a1", "b1", "c1", "res", "i1", "cnt", "lo", "hi", "tmp", "acc"),
    ("first", "second", "element", "output", "position", "number", "start", "stop", "piece", "state"),
)
_COMMENTS = (
    "# handles all cases",
    "# see the task",
    "# straightforward solution",
    "# tested on the examples",
)
_MIRRORED = {
    ast.Lt: ast.Gt,
    ast.Gt: ast.Lt,
    ast.LtE: ast.GtE,
    ast.GtE: ast.LtE,
    ast.Eq: ast.Eq,
    ast.NotEq: ast.NotEq,
}
_NEGATED = {ast.NotEq: ast.Eq, ast.NotIn: ast.In, ast.IsNot: ast.Is}


def restyle(source: str, rng: np.random.Generator) -> str:
    """Write statements in an equivalent way, rename local variables, add a docstring or a comment, each at random."""
    tree = _Rephrase(rng).visit(ast.parse(source))
    function = tree.body[0]
    assert isinstance(function, ast.FunctionDef)
    if rng.random() < 0.6:
        _rename_locals(function, _NAMES[rng.integers(len(_NAMES))])
    if rng.random() < 0.4:
        words = function.name.replace("_", " ")
        function.body.insert(0, ast.Expr(ast.Constant(f"Return the {words}.")))
    text = ast.unparse(ast.fix_missing_locations(tree)) + "\n"
    return f"{_COMMENTS[rng.integers(len(_COMMENTS))]}\n{text}" if rng.random() < 0.3 else text


class _Rephrase(ast.NodeTransformer):
    """Equivalent for plain values: right solutions of one task differ in their trees, as those of real agents do."""

    def __init__(self, rng: np.random.Generator):
        self._rng = rng

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        """a < b becomes b > a; a != b becomes not a == b."""
        self.generic_visit(node)
        if len(node.ops) > 1 or self._skip():
            return node
        kind, right = type(node.ops[0]), node.comparators[0]
        if kind in _NEGATED:
            return ast.UnaryOp(ast.Not(), ast.Compare(node.left, [_NEGATED[kind]()], [right]))
        return ast.Compare(right, [_MIRRORED[kind]()], [node.left]) if kind in _MIRRORED else node

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.stmt:
        """n -= 1 becomes n = n - 1 (a list's += is another thing than its +)."""
        self.generic_visit(node)
        numeric = not isinstance(node.op, ast.Add | ast.BitOr) or _is_number(node.value)
        if not isinstance(node.target, ast.Name) or not numeric or self._skip():
            return node
        return ast.Assign([node.target], ast.BinOp(ast.Name(node.target.id, ast.Load()), node.op, node.value))

    def visit_If(self, node: ast.If) -> ast.stmt:
        """The two branches change places."""
        self.generic_visit(node)
        if not node.orelse or self._skip():
            return node
        return ast.If(ast.UnaryOp(ast.Not(), node.test), node.orelse, node.body)

    def visit_Return(self, node: ast.Return) -> ast.stmt | list[ast.stmt]:
        """The result of a comparison by two returns; any other by way of a variable."""
        self.generic_visit(node)
        if node.value is None or isinstance(node.value, ast.Constant | ast.Name) or self._skip():
            return node
        if isinstance(node.value, ast.Compare):
            yes, no = (ast.Return(ast.Constant(value)) for value in (True, False))
            return [ast.If(node.value, [yes], []), no]
        return [
            ast.Assign([ast.Name("answer", ast.Store())], node.value),
            ast.Return(ast.Name("answer", ast.Load())),
        ]

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """range(n) becomes range(0, n)."""
        self.generic_visit(node)
        if (
            isinstance(node.func, ast.Name)
            and node.func.id == "range"
            and len(node.args) == 1
            and not self._skip()
        ):
            return ast.Call(node.func, [ast.Constant(0), *node.args], [])
        return node

    def _skip(self) -> bool:
        return self._rng.random() < 0.5


def _is_number(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, int | float)


def _rename_locals(function: ast.FunctionDef, names: tuple[str, ...]) -> None:
    """Rename what the function assigns; its arguments keep the names of the signature."""
    arguments = {a.arg for a in function.args.args}
    used = {n.id for n in ast.walk(function) if isinstance(n, ast.Name)} | arguments | {function.name}
    assigned = sorted(
        {n.id for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    )
    free = [name for name in names if name not in used]
    mapping = dict(zip([name for name in assigned if name not in arguments], free, strict=False))
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and node.id in mapping:
            node.id = mapping[node.id]
