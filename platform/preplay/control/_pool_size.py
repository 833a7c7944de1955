"""How many candidates are worth waiting for: quality against latency, measured."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from preplay.control._controller import Controller, Evidence
from preplay.critics import DecisionState

Gather = Callable[[DecisionState, Sequence[str]], Evidence]


@dataclass(frozen=True)
class PoolSizePoint:
    """At K candidates: success of the chosen ones, and the controller's time per decision."""

    size: int
    success: float
    p50_ms: float
    p99_ms: float


def pool_size_curve(
    controller: Controller,
    work: Sequence[tuple[DecisionState, Sequence[str], Sequence[bool]]],
    sizes: Sequence[int] = (1, 2, 4, 8),
    gather: Gather | None = None,
) -> list[PoolSizePoint]:
    """Decide on the first K candidates of each pool, whose outcomes are known.

    ``gather`` finds the evidence about those K, which may depend on how many there are (a vote does); its time is not
    the controller's and is left out.
    """
    return [_point(controller, work, size, gather) for size in sizes]


def choose_pool_size(
    curve: Sequence[PoolSizePoint], *, budget_ms: float = np.inf, tolerance: float = 0.01
) -> int:
    """The smallest K within the time budget whose success is within ``tolerance`` of the best within it."""
    allowed = [point for point in curve if point.p99_ms <= budget_ms] or [min(curve, key=lambda p: p.p99_ms)]
    best = max(point.success for point in allowed)
    return min(point.size for point in allowed if point.success >= best - tolerance)


def _point(
    controller: Controller,
    work: Sequence[tuple[DecisionState, Sequence[str], Sequence[bool]]],
    size: int,
    gather: Gather | None,
) -> PoolSizePoint:
    solved, times = [], []
    for state, candidates, right in work:
        evidence = gather(state, candidates[:size]) if gather else None
        started = time.perf_counter()
        decision = controller.decide(state, candidates[:size], evidence=evidence)
        times.append(1000 * (time.perf_counter() - started))
        solved.append(decision.action is not None and right[list(candidates).index(decision.action)])
    return PoolSizePoint(size, float(np.mean(solved)), *map(float, np.quantile(times, [0.5, 0.99])))
