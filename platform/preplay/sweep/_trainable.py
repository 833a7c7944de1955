"""What a sweep can train: one protocol, and what there is by name."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
from pydantic import BaseModel

from preplay.errors import PreplayError
from preplay.sweep._members import Product
from preplay.sweep._stages import CommonFiles


@dataclass(frozen=True)
class Outcome:
    """What a stage of a trial showed.

    Args:
        metrics: Figures by name, all finite.
        prediction: float64 [V], what the model predicts for V validation cases; averages of it are what an ensemble
            predicts. Empty where averages say nothing.
    """

    metrics: Mapping[str, float]
    prediction: np.ndarray


@dataclass(frozen=True)
class Job:
    """One trial's work.

    Args:
        shared: What :meth:`Trainable.prepare` made; arrays in it are read-only views of the object store.
        config: The trainable's configuration.
        seed: The same in all trials: they are compared on the same split and the same random numbers.
        shares: Cumulative shares of the full training at which to stop and report, ascending, the last 1.
        done: How many of them an earlier run of this trial finished; ``folder`` holds its state.
        folder: Local folder for the state of the training.
        common: Files of all trials of the sweep, for parts of the training that are the same in some of them.
        wanted: Metrics that stages before the last must tell; the last tells all.
    """

    shared: Any
    config: Any
    seed: int
    shares: tuple[float, ...]
    done: int
    folder: Path
    common: CommonFiles
    wanted: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Prepared:
    """Data for all trials, and what names them.

    Args:
        shared: Goes into the object store once.
        inputs: Content hashes of the artifacts it comes from.
        told: The metrics that these data can tell; by default all of the trainable's.
    """

    shared: Any
    inputs: dict[str, str]
    told: frozenset[str] | None = None


class Trainable(Protocol):
    """A kind of model that can be swept."""

    name: str
    config: type[BaseModel]
    metrics: Mapping[str, Literal["min", "max"]]
    fixed: tuple[str, ...]
    """Fields that decide what trials are compared on: they may stand in ``base``, but not be searched."""
    needs_data: bool
    place: str
    """Where the configuration stands in the YAML of `preplay config`; empty where it does not."""
    continues: bool
    """Whether a stage goes on where the last one ended; if not, each stage trains afresh with more steps."""

    def prepare(self, data: Any, folder: Path, seed: int, cache: Path) -> Prepared:
        """Read (or simulate) the data. Runs once, in the driver."""
        ...

    def run(self, job: Job) -> Iterator[Outcome]:
        """Train up to each share that is left, and measure there."""
        ...

    def ensemble_loss(self, shared: Any, prediction: np.ndarray) -> float | None:
        """Validation error of a (mean) prediction; lower is better. None: the best trials make the ensemble."""
        ...

    def publish(self, product: Product, target: Path | str) -> dict[str, Any]:
        """Train the chosen configurations to the end and write the product; returns its metrics."""
        ...


_BUILT_IN = {
    "world_model": "preplay.sweep.trainables:WorldModelTrainable",
    "critic_iql": "preplay.sweep.trainables:IqlTrainable",
    "critic_cql": "preplay.sweep.trainables:CqlTrainable",
    "fqe": "preplay.sweep.trainables:FqeTrainable",
    "rehearsal_minigrid": "preplay.sweep.trainables:RehearsalTrainable",
}


def get_trainable(name: str, *, where: str | None = None) -> Trainable:
    """The trainable of this name, or of your own at ``module:Class``; imported only now.

    Raises:
        PreplayError: When there is none.
    """
    path = _BUILT_IN.get(name, name)
    module, _, attribute = path.partition(":")
    if not attribute:
        known = ", ".join(sorted(_BUILT_IN))
        raise PreplayError(
            f"no trainable {name!r}.", where=where, fix=f"There are: {known}, and your own as module:Class."
        )
    try:
        return getattr(import_module(module), attribute)()
    except (ImportError, AttributeError) as error:
        fix = (
            "Install preplay[rllib]."
            if name == "rehearsal_minigrid"
            else "Check the path, and that it is installed."
        )
        raise PreplayError(
            f"the trainable {name!r} cannot be loaded: {error}.", where=where, fix=fix
        ) from error
