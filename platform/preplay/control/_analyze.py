"""Whose fault was it? Failures by cause: no good candidate, a good one scored low, or states that look the same."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from preplay.critics import Decisions


@dataclass(frozen=True)
class FailureAnalysis:
    """Counts of failed decisions by cause; they add up to ``failures``.

    Args:
        decisions: All that were looked at.
        failures: Of them, how many executed an action that was wrong.
        generator: No candidate in the pool was right.
        encoder: A right one was there, but nothing the critic sees tells it from the executed one.
        critic: A right one was there, told apart, and scored lower.
        aliased_states: Failures whose state has a twin (equal to the critic) in which the same action was right.
    """

    decisions: int
    failures: int
    generator: int
    encoder: int
    critic: int
    aliased_states: int


def analyze_failures(
    data: Decisions, scores: np.ndarray, right: Sequence[bool] | np.ndarray, *, tolerance: float = 1e-4
) -> FailureAnalysis:
    """Sort the failures of choosing the best-scored candidate.

    Args:
        data: Decisions; only their pools are used.
        scores: float64 [M].
        right: Whether each of the M candidates is right, known by executing them.
        tolerance: Root mean square difference of features below which two candidates or states look the same.
    """
    right, offsets = np.asarray(right, bool), data.pools.offsets
    counts = {"generator": 0, "encoder": 0, "critic": 0}
    failed: list[tuple[int, int]] = []
    succeeded: list[tuple[int, int]] = []
    for i, (start, end) in enumerate(pairwise(offsets)):
        best = int(start + np.argmax(scores[start:end]))
        (succeeded if right[best] else failed).append((i, best))
        if not right[best]:
            counts[_cause(data.pools.features, np.arange(start, end), best, right, tolerance)] += 1
    twins = sum(_has_twin(data, own, succeeded, tolerance) for own in failed)
    return FailureAnalysis(len(data), len(failed), **counts, aliased_states=twins)


def _cause(features: np.ndarray, pool: np.ndarray, best: int, right: np.ndarray, tolerance: float) -> str:
    good = pool[right[pool]]
    if not len(good):
        return "generator"
    distance = np.sqrt(((features[good] - features[best]) ** 2).mean(axis=1))
    return "encoder" if (distance < tolerance).any() else "critic"


def _has_twin(data: Decisions, own: tuple[int, int], others: list[tuple[int, int]], tolerance: float) -> bool:
    (state, action), pools = own, data.pools
    for other_state, other_action in others:
        same_state = np.abs(pools.state[state] - pools.state[other_state]).max() < tolerance
        if same_state and np.abs(pools.features[action] - pools.features[other_action]).max() < tolerance:
            return True
    return False
