"""Which sessions to collect next: where fresh rollouts of the target would shrink the interval most.

Shapes: S sessions, G groups.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from preplay.errors import PreplayError


@dataclass(frozen=True)
class CollectionStep:
    """A group of initial states (or tasks, or first actions) and what rollouts there would bring.

    Args:
        group: Its name.
        share: Of the logged sessions.
        variance_share: Of the estimate's variance that comes from it now.
        gain: Share of the whole variance that ``rollouts`` fresh sessions there would remove.
        rollouts: Sessions of the budget best spent there.
    """

    group: str
    share: float
    variance_share: float
    gain: float
    rollouts: int


def collection_plan(
    influence: np.ndarray,
    groups: Sequence[str],
    target_return_deviation: np.ndarray | float,
    budget: int,
    missing: dict[str, float] | None = None,
) -> list[CollectionStep]:
    """Spread ``budget`` rollouts of the target over groups, most useful first.

    A group with share p that now adds variance A = Σψ²/S² would, after m fresh on-policy sessions, be
    estimated from both by inverse variance, 1/(1/A + m/(p²σ²)) with σ the spread of the target's return
    there. Rollouts go one at a time to the group where the next one removes most.

    Args:
        influence: float64 [S] of the estimate (``estimator.influence``).
        groups: S names.
        target_return_deviation: σ, one number or float64 [G] for the groups in sorted order.
        budget: Rollouts affordable.
        missing: Group → share of the target's actions there that the logs lack. Such a group's present
            information does not count.
    """
    names, which = np.unique(np.asarray(groups, str), return_inverse=True)
    n, count = len(influence), np.bincount(which)
    if len(which) != n:
        raise PreplayError(f"{len(which)} groups for {n} sessions.")
    if not np.isfinite(influence).all():
        raise PreplayError(
            "the estimate is undefined, so no session can be ranked.", fix="Collect anywhere first."
        )
    now = np.bincount(which, influence**2) / n**2
    lack = np.array([(missing or {}).get(str(name), 0.0) for name in names])
    single = (count / n) ** 2 * np.broadcast_to(np.asarray(target_return_deviation, float) ** 2, len(names))
    start = np.maximum(now, single * lack)
    rollouts = _allocate(start, np.maximum(single, 1e-300), budget)
    after = _after(start, single, rollouts)
    total = max(float(start.sum()), 1e-300)
    steps = [
        CollectionStep(
            str(names[g]),
            float(count[g] / n),
            float(start[g] / total),
            float((start[g] - after[g]) / total),
            int(rollouts[g]),
        )
        for g in range(len(names))
    ]
    return sorted(steps, key=lambda s: (-s.gain, s.group))


def _allocate(now: np.ndarray, single: np.ndarray, budget: int) -> np.ndarray:
    """Rollouts per group: greedy, which is optimal because each next one brings less."""
    rollouts = np.zeros(len(now), int)
    step = max(budget // 200, 1)
    left = budget
    while left > 0:
        size = min(step, left)
        gain = _after(now, single, rollouts) - _after(now, single, rollouts + size)
        rollouts[int(np.argmax(gain))] += size
        left -= size
    return rollouts


def _after(now: np.ndarray, single: np.ndarray, rollouts: np.ndarray) -> np.ndarray:
    """Variance of each group's part after its rollouts."""
    return now * single / np.maximum(single + rollouts * now, 1e-300)
