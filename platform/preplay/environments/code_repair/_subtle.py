"""Faults that the examples do not show: code that passes all public tests and fails a hidden one."""

import ast
from functools import lru_cache

from preplay.environments.code_repair._grader import Grader
from preplay.environments.code_repair._mutations import FAULTS, mutants
from preplay.environments.code_repair._task import Task

_GUARDS: dict[type, tuple[str, ...]] = {
    int: (
        "if {x} == 0:\n    return 0",
        "if {x} <= 1:\n    return 1",
        "if {x} <= 0:\n    return None",
        "{x} = abs({x})",
        "{x} = min({x}, 1000)",
    ),
    float: ("{x} = round({x})", "{x} = abs({x})", "if {x} <= 0:\n    return 0"),
    str: (
        "if not {x}:\n    return None",
        "if len({x}) < 2:\n    return {x}",
        "{x} = {x}.strip()",
        "{x} = {x}.lower()",
        "{x} = ' '.join({x}.split())",
    ),
    list: (
        "if not {x}:\n    return None",
        "if len({x}) < 2:\n    return {x}",
        "{x} = sorted({x})",
        "{x} = list(dict.fromkeys({x}))",
        "{x} = [x for x in {x} if x]",
        "{x} = {x}[:10]",
    ),
    dict: (
        "if not {x}:\n    return None",
        "{x} = {{k: v for k, v in {x}.items() if v}}",
        "{x} = dict(sorted({x}.items()))",
    ),
}
"""By type of argument, what agents put in front: a special case handled wrongly, a cleaning that nobody asked for."""


def subtle_faults(task: Task, grader: Grader) -> list[str]:
    """All one-change faults and wrong guards of a task that only hidden tests show, in a fixed order."""
    sources = _sources(task)
    grades = grader.grade_many([(task, source) for source in sources])
    return [
        source for source, grade in zip(sources, grades, strict=True) if grade.public_ok and not grade.solved
    ]


@lru_cache(maxsize=256)
def _sources(task: Task) -> list[str]:
    changed = [text for kind in FAULTS for text in mutants(task.reference, kind)]
    return list(dict.fromkeys([*changed, *_guarded(task)]))


def _guarded(task: Task) -> list[str]:
    """The reference behind each guard that fits one of its arguments."""
    function = ast.parse(task.reference).body[0]
    assert isinstance(function, ast.FunctionDef)
    names = [a.arg for a in function.args.args]
    out = []
    for name, example in zip(names, task.public[0][0], strict=False):
        for guard in _GUARDS.get(type(example), ()):
            changed = ast.parse(task.reference)
            changed.body[0].body[:0] = ast.parse(guard.format(x=name)).body  # pyright: ignore[reportAttributeAccessIssue]
            out.append(ast.unparse(ast.fix_missing_locations(changed)) + "\n")
    return out
