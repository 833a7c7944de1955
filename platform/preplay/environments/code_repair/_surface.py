"""The same program in other words: names, docstring and comments say nothing about whether it is right."""

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


def restyle(source: str, rng: np.random.Generator) -> str:
    """Rename the local variables, add a docstring or a comment, each at random."""
    tree = ast.parse(source)
    function = tree.body[0]
    assert isinstance(function, ast.FunctionDef)
    if rng.random() < 0.6:
        _rename_locals(function, _NAMES[rng.integers(len(_NAMES))])
    if rng.random() < 0.4:
        words = function.name.replace("_", " ")
        function.body.insert(0, ast.Expr(ast.Constant(f"Return the {words}.")))
    text = ast.unparse(ast.fix_missing_locations(tree)) + "\n"
    return f"{_COMMENTS[rng.integers(len(_COMMENTS))]}\n{text}" if rng.random() < 0.3 else text


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
