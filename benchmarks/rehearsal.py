"""Real steps to 0.9 of the optimal return: RehearsalPPO, DQN and SAC against RLlib's, the same collector without a
model, and RehearsalPPO with single parts switched off. All arms of a task see the same observation.

``debug`` takes DoorKey-5x5, two seeds and two arms, and the fidelity of one world model: under 3 minutes on two idle
cores. ``full`` takes six MiniGrid tasks, CartPole and CartPole without velocities: many hours of CPU in cells of
about a minute, kept in ``runs/rehearsal_cells`` and skipped when they are there. More processes can share the folder:
``python -m benchmarks._rehearsal_cells runs/rehearsal_cells --tasks ... --arms ... --seeds 0:10``.
"""

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import trim_mean

from benchmarks._common import bench_main
from benchmarks._rehearsal_cells import ABLATIONS, MEMORY_TASK, begin, ensure_cell
from benchmarks._rehearsal_fidelity import fidelity
from preplay.seeding import numpy_rng

CELLS = Path("runs/rehearsal_cells")
RESAMPLES = 2000


@dataclass(frozen=True)
class Part:
    """Some tasks, the arms that are compared on them, and how often each is run."""

    tasks: tuple[str, ...]
    arms: tuple[str, ...]
    seeds: int


def _rooms(*names: str) -> tuple[str, ...]:
    return tuple(f"MiniGrid-{name}-v0" for name in names)


ROOMS = _rooms("Empty-8x8", "DoorKey-5x5", "DoorKey-6x6", "LavaGapS5", "MultiRoom-N2-S4", "Unlock")
ON_POLICY, DQN, SAC = ("rehearsal", "matched", "ppo"), ("rehearsal-dqn", "dqn"), ("rehearsal-sac", "sac")
PRESETS = {
    "debug": (Part(_rooms("DoorKey-5x5"), ("rehearsal", "matched"), 2),),
    "full": (
        Part(ROOMS, (*ON_POLICY, "matched-fewer"), 10),
        Part((MEMORY_TASK,), ON_POLICY, 5),
        Part(("CartPole-v1",), (*ON_POLICY, *DQN, *SAC), 5),
        Part(_rooms("Empty-8x8", "DoorKey-5x5"), DQN, 5),
        Part(_rooms("DoorKey-5x5", "LavaGapS5"), ("rehearsal", *ABLATIONS), 5),
    ),
}


def run(preset: str) -> dict[str, float]:
    """All cells of the preset, then their summaries."""
    begin()
    if preset == "full":
        return _summaries(PRESETS[preset], CELLS)
    with tempfile.TemporaryDirectory() as folder:
        return _summaries(PRESETS[preset], Path(folder))


def _summaries(parts: tuple[Part, ...], folder: Path) -> dict[str, float]:
    metrics: dict[str, float] = {}
    for part in parts:
        for task in part.tasks:
            cells = {a: [ensure_cell(folder, task, a, s) for s in range(part.seeds)] for a in part.arms}
            metrics |= {f"{short(task)} {k}": v for k, v in summary(cells).items()}
            if task in ROOMS and "matched" in part.arms:
                metrics |= {f"{short(task)} {k}": v for k, v in fidelity(task).items()}
    return metrics


def short(task: str) -> str:
    return task.removeprefix("MiniGrid-").removesuffix("-v0")


def summary(cells: dict[str, list[dict[str, Any]]]) -> dict[str, float]:
    """Per arm: IQM of the steps with a 95 % bootstrap interval over seeds, runs that never got there (counted at
    the steps they were given), final return and CPU-seconds; then the ratio of RehearsalPPO to each other arm, and
    of rehearsing DQN and SAC to their own, with its interval."""
    metrics: dict[str, float] = {}
    steps = {arm: _steps(of) for arm, of in cells.items()}
    for arm, of in cells.items():
        low, high = np.quantile(_bootstrap(steps[arm]), [0.025, 0.975])
        metrics[f"{arm} steps"] = iqm(steps[arm])
        metrics[f"{arm} steps low"], metrics[f"{arm} steps high"] = float(low), float(high)
        metrics[f"{arm} not reached"] = float(sum(cell["reached"] is None for cell in of))
        metrics[f"{arm} final return"] = float(np.mean([cell["final"] for cell in of]))
        metrics[f"{arm} CPU-seconds"] = float(np.mean([cell["cpu_seconds"] for cell in of]))
    for ours, other in _pairs(list(cells)):
        ratios = _bootstrap(steps[ours], 1) / _bootstrap(steps[other], 2)
        low, high = np.quantile(ratios, [0.025, 0.975])
        metrics[f"{ours} / {other}"] = iqm(steps[ours]) / iqm(steps[other])
        metrics[f"{ours} / {other} low"], metrics[f"{ours} / {other} high"] = float(low), float(high)
    return metrics


def _pairs(arms: list[str]) -> list[tuple[str, str]]:
    """Which arms are compared: RehearsalPPO with all others, rehearsing DQN and SAC with their own."""
    own = [(f"rehearsal-{arm}", arm) for arm in arms if f"rehearsal-{arm}" in arms]
    with_all = [("rehearsal", arm) for arm in arms if arm != "rehearsal"] if "rehearsal" in arms else []
    return [*with_all, *own]


def iqm(values: np.ndarray) -> float:
    """Interquartile mean."""
    return float(trim_mean(values, 0.25))


def _steps(cells: list[dict[str, Any]]) -> np.ndarray:
    return np.array([cell["reached"] or cell["steps"] for cell in cells], float)


def _bootstrap(values: np.ndarray, stream: int = 0) -> np.ndarray:
    draws = numpy_rng(0, "rehearsal benchmark", stream).integers(len(values), size=(RESAMPLES, len(values)))
    return trim_mean(values[draws], 0.25, axis=1)


if __name__ == "__main__":
    bench_main(
        run,
        title="Rehearsal: real steps to 0.9 of the optimal return",
        goals={
            f"{short(task)} {metric}": goal
            for task in ROOMS
            for metric, goal in (
                ("rehearsal / matched", "<= 0.67 on four"),
                ("rehearsal / ppo", "<= 0.25"),
                ("exact_10", ">= 0.9"),
            )
        },
    )
