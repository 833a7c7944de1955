"""Real steps to 0.9 of the optimal return on MiniGrid: RehearsalPPO against tuned PPO, the same collector without a
model, and a placebo. All arms see the same 7x7 one-hot view.

``debug`` takes DoorKey-5x5, two seeds and two arms, and the fidelity of one world model: under 3 minutes on two idle
cores. ``full`` takes six tasks, all arms and ten seeds: many hours of CPU in cells of about a minute, kept in
``runs/rehearsal_cells`` and skipped when they are there. More processes can work on the same folder with
``python -m benchmarks._rehearsal_cells runs/rehearsal_cells --tasks ... --arms ... --seeds 0:10``.
"""

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import trim_mean

from benchmarks._common import bench_main
from benchmarks._rehearsal_cells import ARMS, begin, ensure_cell
from benchmarks._rehearsal_fidelity import fidelity
from preplay.seeding import numpy_rng

CELLS = Path("runs/rehearsal_cells")
RESAMPLES = 2000


@dataclass(frozen=True)
class Preset:
    """What is run."""

    tasks: tuple[str, ...]
    arms: tuple[str, ...]
    seeds: int


ROOMS = ("Empty-8x8", "DoorKey-5x5", "DoorKey-6x6", "LavaGapS5", "MultiRoom-N2-S4", "Unlock")
PRESETS = {
    "debug": Preset(("MiniGrid-DoorKey-5x5-v0",), ("rehearsal", "matched"), 2),
    "full": Preset(tuple(f"MiniGrid-{room}-v0" for room in ROOMS), tuple(ARMS), 10),
}


def run(preset: str) -> dict[str, float]:
    """All cells of the preset, then their summaries."""
    begin()
    if preset == "full":
        return _summaries(PRESETS[preset], CELLS)
    with tempfile.TemporaryDirectory() as folder:
        return _summaries(PRESETS[preset], Path(folder))


def _summaries(preset: Preset, folder: Path) -> dict[str, float]:
    metrics: dict[str, float] = {}
    for task in preset.tasks:
        cells = {a: [ensure_cell(folder, task, a, s) for s in range(preset.seeds)] for a in preset.arms}
        metrics |= {f"{short(task)} {k}": v for k, v in summary(cells).items()}
        metrics |= {f"{short(task)} {k}": v for k, v in fidelity(task).items()}
    return metrics


def short(task: str) -> str:
    return task.removeprefix("MiniGrid-").removesuffix("-v0")


def summary(cells: dict[str, list[dict[str, Any]]]) -> dict[str, float]:
    """Per arm: IQM of the steps with a 95 % bootstrap interval over seeds, runs that never got there (counted at
    the steps they were given), final return and CPU-seconds; then the ratio of RehearsalPPO to each other arm with
    its interval."""
    metrics: dict[str, float] = {}
    steps = {arm: _steps(of) for arm, of in cells.items()}
    for arm, of in cells.items():
        low, high = np.quantile(_bootstrap(steps[arm]), [0.025, 0.975])
        metrics[f"{arm} steps"] = iqm(steps[arm])
        metrics[f"{arm} steps low"], metrics[f"{arm} steps high"] = float(low), float(high)
        metrics[f"{arm} not reached"] = float(sum(cell["reached"] is None for cell in of))
        metrics[f"{arm} final return"] = float(np.mean([cell["final"] for cell in of]))
        metrics[f"{arm} CPU-seconds"] = float(np.mean([cell["cpu_seconds"] for cell in of]))
    for arm in cells.keys() - {"rehearsal"}:
        if "rehearsal" in cells:
            ratios = _bootstrap(steps["rehearsal"], 1) / _bootstrap(steps[arm], 2)
            low, high = np.quantile(ratios, [0.025, 0.975])
            metrics[f"rehearsal / {arm}"] = iqm(steps["rehearsal"]) / iqm(steps[arm])
            metrics[f"rehearsal / {arm} low"], metrics[f"rehearsal / {arm} high"] = float(low), float(high)
    return metrics


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
            "DoorKey-5x5 rehearsal / matched": "<= 0.67",
            "DoorKey-5x5 rehearsal / ppo": "<= 0.25",
            "DoorKey-5x5 exact_10": ">= 0.9",
        },
    )
