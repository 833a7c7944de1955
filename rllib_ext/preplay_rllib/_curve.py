"""The curve of a run: one row per training step, as CSV and for TensorBoard."""

import csv
import math
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from tensorboardX import SummaryWriter

FILE, TENSORBOARD = "metrics.csv", "tensorboard"


@dataclass(frozen=True)
class Point:
    """One training step; None where a figure is not known (yet).

    Args:
        real_steps: Real environment steps so far.
        episode_return: Mean return of the last 50 real episodes, without any bonus.
        open: 1 when rehearsal ran, 0 when a gate or the warm-up held it back.
        imagined_rows: Imagined transitions trained on in this step.
        model_exact: Share of the newest real transitions that the model predicted exactly before it saw them.
        gap: Imagined minus real success from the same states, running mean.
    """

    real_steps: int
    episode_return: float | None
    open: float | None
    imagined_rows: float | None
    imagined_success: float | None
    model_exact: float | None
    model_loss: float | None
    gap: float | None
    disagreement: float | None

    @classmethod
    def of(cls, result: dict[str, Any]) -> "Point":
        """The row of an RLlib training result."""
        runner, rehearsal = result["env_runners"], result.get("rehearsal", {})
        named = {f.name: _number(rehearsal.get(f.name)) for f in fields(cls)[2:]}
        steps = int(runner["num_env_steps_sampled_lifetime"])
        return cls(real_steps=steps, episode_return=_number(runner.get("episode_return_mean")), **named)


class Curve:
    """Points on disk; opening it writes the given ones and drops whatever came after them."""

    def __init__(self, folder: Path, points: list[Point]):
        self.folder, self.points = folder, []
        self._file = (folder / FILE).open("w", newline="")
        self._csv = csv.DictWriter(self._file, [f.name for f in fields(Point)])
        self._csv.writeheader()
        purge = points[-1].real_steps + 1 if points else 0
        self._board = SummaryWriter(str(folder / TENSORBOARD), purge_step=purge)
        for point in points:
            self._write(point)

    def add(self, point: Point) -> None:
        """Append a point."""
        self._write(point)
        for name, value in asdict(point).items():
            if value is not None and name != "real_steps":
                self._board.add_scalar(name, value, point.real_steps)

    def _write(self, point: Point) -> None:
        self.points.append(point)
        self._csv.writerow({k: "" if v is None else repr(v) for k, v in asdict(point).items()})
        self._file.flush()

    def __enter__(self) -> "Curve":
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        self._board.close()

    @staticmethod
    def read(folder: Path) -> list[Point]:
        """The points of a run."""
        with (folder / FILE).open(newline="") as file:
            rows = list(csv.DictReader(file))
        return [
            Point(**{k: int(v) if k == "real_steps" else float(v) if v else None for k, v in row.items()})  # type: ignore[arg-type]
            for row in rows
        ]


def _number(value: Any) -> float | None:
    return None if value is None or not math.isfinite(float(value)) else float(value)
