"""What a harness may find out before it chooses: public tests, and how candidates behave on inputs without answers.

Hidden tests and the reference have no part in it. Candidates with dangerous calls are not run: theirs are zeros.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from preplay.environments.code_repair._grader import Grader
from preplay.environments.code_repair._task import Task
from preplay.rewards import dangerous_calls

EVIDENCE = (
    "public_passed",
    "public_ok",
    "errors",
    "errors_more",
    "vote",
    "votes_each",
    "differs",
    "odd_alone",
)
"""Names of the numbers per candidate that :func:`gather_evidence` returns.

Shares of public tests passed (and whether all), of probes that raise (and how many more than the pool's mean); of the
*other* candidates with the same outputs on all probes, and on each probe on average; of probes on which the most
frequent output of the pool is another one; whether nobody agrees on all of them.
"""
_MOST_PROBES = 12


def gather_evidence(grader: Grader, task: Task, codes: Sequence[str]) -> list[tuple[float, ...]]:
    """Run all candidates on the public tests and on probes made from their arguments."""
    safe = [not dangerous_calls(code) for code in codes]
    run = [(task, code) for code, ok in zip(codes, safe, strict=True) if ok]
    seen = iter(grader.outputs_many(run, visible_inputs(task)))
    outputs = [next(seen) if ok else () for ok in safe]
    public = len(task.public)
    passed = [grader.public_passed(task, out[:public]) / public if out else 0.0 for out in outputs]
    shown = [out[public:] for out in outputs]
    errors = np.array([np.mean([text.startswith("!") for text in out]) if out else 1.0 for out in shown])
    rows = [_agreement(i, shown) for i in range(len(codes))]
    return [
        (p, float(p == 1), float(e), float(e - errors.mean()), *row) if ok else (0.0,) * len(EVIDENCE)
        for p, e, row, ok in zip(passed, errors, rows, safe, strict=True)
    ]


def visible_inputs(task: Task) -> tuple[tuple[Any, ...], ...]:
    """The public tests' arguments, then probes: one argument of an example replaced by a neighbour or an edge."""
    shown = [arguments for arguments, _ in task.public]
    probes: dict[str, tuple[Any, ...]] = {}
    for arguments in shown:
        for place, value in enumerate(arguments):
            for other in _neighbours(value):
                probe = (*arguments[:place], other, *arguments[place + 1 :])
                probes.setdefault(repr(probe), probe)
    known = {repr(arguments) for arguments in shown}
    new = [probe for text, probe in probes.items() if text not in known]
    step = max(1, -(-len(new) // _MOST_PROBES))
    return (*shown, *new[::step])


def _neighbours(value: Any) -> Iterator[Any]:
    """Edges first; numbers stay on their side of zero, because a task may not be defined beyond it."""
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, int | float):
        yield from (type(value)(0), type(value)(1), value + 1, value * 2)
        if value >= 1:
            yield value - 1
    elif isinstance(value, str | list | tuple):
        yield from (value[:0], value[:1], value[1:], value[::-1], value * 2)
    elif isinstance(value, dict):
        yield from ({}, dict(list(value.items())[:1]))


def _agreement(own: int, outputs: list[tuple[str, ...]]) -> tuple[float, float, float, float]:
    """(vote, votes_each, differs, odd_alone) of one candidate."""
    mine = outputs[own]
    others = [out for i, out in enumerate(outputs) if i != own and out]
    if not mine or not others:
        return 0.0, 0.0, 1.0, 1.0
    vote = sum(out == mine for out in others) / len(others)
    each = [sum(out[k] == text for out in others) / len(others) for k, text in enumerate(mine)]
    usual = [Counter(out[k] for out in outputs if out).most_common(1)[0][0] for k in range(len(mine))]
    differs = [text != common for text, common in zip(mine, usual, strict=True)]
    return vote, float(np.mean(each)), float(np.mean(differs)), float(vote == 0)
