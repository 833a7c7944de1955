"""A trainable small enough for tests, and one that fails on demand.

Gradient descent on (x - 3)^2 from x = 0; a full training takes 90 steps. Every trained stage leaves a line
in ``log``, so that tests see what was really trained.
"""

import contextlib
import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict

from preplay.artifacts import write_artifact
from preplay.errors import PreplayError
from preplay.sweep import Job, Outcome, Prepared, Product, train_members

STEPS = 90
NAME = "tests.sweep.quadratic:Quadratic"


class QuadraticConfig(BaseModel):
    """What is searched, and where and how it fails (in the stage that ends at ``fault_at`` of the training)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    rate: float = 0.01
    offset: float = 0.0
    kind: Literal["plain", "shifted"] = "plain"
    shift: float = 0.0
    fault: Literal["none", "raise", "nan", "die", "die_once", "wait", "hog", "fill", "lose"] = "none"
    fault_at: float = 1.0
    log: str = ""
    seconds: float = 0.0


class Quadratic:
    name = "quadratic"
    config = QuadraticConfig
    fixed = ("log",)
    needs_data = False
    place = ""
    continues = True
    metrics: ClassVar[dict[str, Literal["min", "max"]]] = {"loss": "min", "cost": "min", "distance": "max"}

    def prepare(self, data: Any, folder: Path, seed: int, cache: Path) -> Prepared:
        return Prepared(np.arange(100_000, dtype=np.float64), {"numbers": "100000"})

    def run(self, job: Job) -> Iterator[Outcome]:
        config, file = job.config, job.folder / "x.json"
        x, done = json.loads(file.read_text()) if file.exists() else (0.0, 0)
        for share in job.shares:
            self._fail(config, share)
            while done < round(STEPS * share):
                x, done = x - config.rate * 2 * (x - 3.0), done + 1
            time.sleep(config.seconds)
            file.write_text(json.dumps([x, done]))
            self._note(job, share)
            loss = (
                float("nan") if config.fault == "nan" and share >= config.fault_at else self._loss(config, x)
            )
            owned = bool(job.shared.flags.owndata or job.shared.flags.writeable)
            metrics = {"loss": loss, "cost": config.rate, "distance": abs(x), "copied": float(owned)}
            yield Outcome(metrics, np.array([x + config.offset]))

    def ensemble_loss(self, shared: Any, prediction: np.ndarray) -> float:
        return float((prediction[0] - 3.0) ** 2)

    def publish(self, product: Product, target: Path | str) -> dict[str, Any]:
        return train_members(product, target, _member)

    def _loss(self, config: QuadraticConfig, x: float) -> float:
        return (x - 3.0) ** 2 + abs(config.offset) + abs(config.shift - 0.5) * (config.kind == "shifted")

    def _note(self, job: Job, share: float) -> None:
        if job.config.log:
            with open(job.config.log, "a") as log:
                log.write(json.dumps({"rate": job.config.rate, "share": round(share, 3)}) + "\n")

    def _fail(self, config: QuadraticConfig, share: float) -> None:
        if config.fault == "none" or share < config.fault_at:
            return
        if config.fault == "raise":
            raise PreplayError("it broke on purpose.")
        once = Path(config.log + ".died")
        if config.fault == "die" or (config.fault == "die_once" and not once.exists()):
            once.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        if config.fault == "wait":
            time.sleep(600)
        if config.fault == "hog":
            _take_memory()
        trials = Path(config.log).parent / "sweeps" / "quadratic" / "trials"
        if config.fault == "fill":
            _fill_disk(trials.parent)
        if config.fault == "lose" and not trials.with_name("lost").exists():
            trials.rename(trials.with_name("lost"))
            trials.write_text("no folder any more")


def _take_memory() -> None:
    """One GB after the other, and hold on to it until Ray's memory monitor comes; 12 GB at most."""
    held = [bytearray(os.urandom(1 << 20) * 1024) for _ in range(12)]
    time.sleep(30)
    del held


def _fill_disk(folder: Path) -> None:
    with (folder / "filling").open("wb", buffering=0) as stream, contextlib.suppress(OSError):
        while stream.write(bytes(1 << 20)):
            pass


def _member(
    shared: Any, config: QuadraticConfig, seed: int, inputs: dict[str, str], path: Path
) -> dict[str, float]:
    with write_artifact(path, "number", config=config.model_dump(), inputs=inputs, seed=seed) as staging:
        (staging.path / "rate.json").write_text(json.dumps(config.rate))
    return {"rate": config.rate}
