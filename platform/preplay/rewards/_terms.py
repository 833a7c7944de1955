"""The reward terms: each measures a batch of outcomes, float64 [B], and has a weight of its own.

The reward of an action is the sum of weight x measure over the terms.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from preplay.rewards._danger import dangerous_calls, parse_python
from preplay.rewards._dataflow import ignores_inputs
from preplay.rewards._outcome import ActionOutcome, code_lines
from preplay.rewards._style import style_violations

Measure = Callable[[Sequence[ActionOutcome]], np.ndarray]
LENGTH_ALLOWANCE = 1.5


@dataclass(frozen=True)
class Term:
    """A named measure with its weight; ``terminal`` terms end the session where their measure is positive."""

    name: str
    weight: float
    measure: Measure
    terminal: bool = False

    def weighted(self, weight: float) -> "Term":
        """The same term with another weight."""
        return replace(self, weight=weight)


def final_result(outcomes: Sequence[ActionOutcome]) -> np.ndarray:
    """1 where all tests pass, hidden ones included."""
    return np.array([float(o.solved) for o in outcomes])


def syntax(outcomes: Sequence[ActionOutcome]) -> np.ndarray:
    """1 where the code parses and holds at least one statement."""
    trees = [parse_python(o.code) for o in outcomes]
    return np.array([float(tree is not None and bool(tree.body)) for tree in trees])


def public_tests(outcomes: Sequence[ActionOutcome]) -> np.ndarray:
    """Number of public tests passed."""
    return np.array([float(o.public_passed) for o in outcomes])


def excess_length(outcomes: Sequence[ActionOutcome]) -> np.ndarray:
    """Lines beyond 1.5 times the reference (0 where there is no reference)."""
    return np.array([_excess(o) for o in outcomes])


def style(outcomes: Sequence[ActionOutcome]) -> np.ndarray:
    """1 where ruff has nothing to say about code that parses."""
    clean = np.array([n == 0 for n in style_violations([o.code for o in outcomes])], np.float64)
    return clean * syntax(outcomes)


def danger(outcomes: Sequence[ActionOutcome]) -> np.ndarray:
    """1 where the syntax tree holds a dangerous operation."""
    return np.array([float(bool(dangerous_calls(o.code))) for o in outcomes])


def ignored_inputs(outcomes: Sequence[ActionOutcome]) -> np.ndarray:
    """1 where the code does nothing with its inputs but hold them against constants: see :func:`ignores_inputs`.

    The answers to the public tests by table would earn as much for these tests as an honest attempt.
    """
    trees = [parse_python(o.code) for o in outcomes]
    return np.array([float(tree is not None and ignores_inputs(tree)) for tree in trees])


def _excess(outcome: ActionOutcome) -> float:
    if outcome.reference_lines is None:
        return 0.0
    return max(0.0, code_lines(outcome.code) - LENGTH_ALLOWANCE * outcome.reference_lines)


DEFAULT_TERMS = (
    Term("final_result", 10.0, final_result),
    Term("syntax", 0.5, syntax),
    Term("public_tests", 1.0, public_tests),
    Term("excess_length", -0.01, excess_length),
    Term("style", 0.2, style),
    Term("danger", -5.0, danger, terminal=True),
    Term("ignored_inputs", -5.0, ignored_inputs),
)
