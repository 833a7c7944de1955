"""Sweeps of rehearsal on MiniGrid: judged by what real steps buy. Needs the extra ``rllib``."""

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import BaseModel

from preplay.sweep._members import Product, publish_settings
from preplay.sweep._trainable import Job, Outcome, Prepared

PACKAGE = "preplay_rllib"
"""Imports preplay, so that preplay itself imports it by name only, when a sweep asks for it."""


class RehearsalTrainable:
    """RLlib with rehearsal; the configuration is ``preplay_rllib.RehearsalRunConfig``.

    Metrics: ``area`` (mean over the real steps of the running mean return: how early it learns, not only how well),
    ``episode_return`` (at the end of the stage).
    """

    name = "rehearsal_minigrid"
    fixed = ("task", "real_steps", "seed")
    needs_data = False
    place = ""
    continues = True
    metrics: ClassVar[dict[str, Literal["min", "max"]]] = {"area": "max", "episode_return": "max"}

    @property
    def config(self) -> type[BaseModel]:
        """See :class:`preplay.sweep.Trainable`."""
        return import_module(PACKAGE).RehearsalRunConfig

    def prepare(self, data: Any, folder: Path, seed: int, cache: Path) -> Prepared:
        """Nothing: experience is made in the trial."""
        return Prepared(None, {})

    def run(self, job: Job) -> Iterator[Outcome]:
        """See :class:`preplay.sweep.Trainable`."""
        train = import_module(PACKAGE).train_rehearsal
        for share in job.shares:
            steps = max(1, round(job.config.real_steps * share))
            config = job.config.model_copy(update={"real_steps": steps, "seed": job.seed})
            yield _measured(train(config, job.folder, resume=(job.folder / "config.json").exists()))

    def ensemble_loss(self, shared: Any, prediction: np.ndarray) -> float:
        """Minus the area: agents are not averaged."""
        return -float(prediction[0])

    def publish(self, product: Product, target: Path | str) -> dict[str, Any]:
        """The chosen settings, to train with."""
        return publish_settings(product, target, self.place)


def _measured(run: Any) -> Outcome:
    """Area under the curve of mean returns over real steps; 0 before the first episode has ended."""
    steps = np.array([0, *(p.real_steps for p in run.points)], np.float64)
    returns = np.array([0.0, *(p.episode_return or 0.0 for p in run.points)])
    area = float(np.trapezoid(returns, steps) / steps[-1])
    return Outcome({"area": area, "episode_return": float(returns[-1])}, np.array([area]))
