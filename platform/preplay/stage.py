"""One way to run work on Ray: a Ray Data ``map_batches`` stage over a pool of actors, one item per call.

The workers persist what they finish under a name that depends on its content only. So a killed actor is
restarted by Ray, a killed driver is simply run again, and both lose no more than the items in flight.
"""

import logging
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import pyarrow as pa
import ray
import ray.data
from ray.data import ActorPoolStrategy
from ray.exceptions import RayTaskError
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from preplay.errors import PreplayError

ACTOR_CPUS = 0.5
"""CPUs booked per actor. Below one, because actors that hold every CPU starve other Ray Data tasks for ever."""


class Worker(Protocol):
    """Handles one item: a table in, a (small) table out."""

    def __call__(self, item: pa.Table) -> pa.Table: ...


def connect(address: str | None = None, *, num_cpus: int | None = None) -> None:
    """Join the Ray cluster at ``address`` or in RAY_ADDRESS, or start a local one; nothing when Ray runs here.

    A cluster that merely runs on this machine is not joined unless asked for (``auto``).
    """
    if ray.is_initialized():
        return
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")  # says "ERROR" about restarts that do work
    address = address or os.environ.get("RAY_ADDRESS") or "local"
    local = {"num_cpus": num_cpus, "include_dashboard": False} if address == "local" else {}
    with _silent_stderr():
        ray.init(address=address, logging_level=logging.ERROR, log_to_driver=False, **local)


@contextmanager
def _silent_stderr() -> Iterator[None]:
    """Nothing reaches stderr, not even from C++: Ray's core announces there that its log level was set."""
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


def default_actors(items: int, *, gpus: float = 0) -> int:
    """One actor per CPU of the cluster (per ``gpus`` GPUs when that is set), but no more than there are items."""
    connect()
    have = ray.cluster_resources()
    slots = have.get("GPU", 0) / gpus if gpus else have.get("CPU", 1)
    return max(1, min(int(slots), items))


def run_stage(
    worker: Callable[..., Worker],
    arguments: Sequence[Any],
    items: Sequence[pa.Table],
    *,
    title: str,
    actors: int | None = None,
    gpus: float = 0,
) -> Iterator[pa.Table]:
    """Hand every item to one of the actors and yield the answers as they come, in no particular order.

    Args:
        worker: Class whose instances are the actors' :class:`Worker`, built from ``arguments`` once per actor.
        items: One table per call. Put the most expensive first.
        title: Label of the progress bar.
        actors: Size of the pool; by default see :func:`default_actors`.
        gpus: GPUs per actor, a share of one or none.

    Raises:
        PreplayError: As an actor raised it.
    """
    if not items:
        return
    connect()
    size = min(actors or default_actors(len(items), gpus=gpus), len(items))
    dataset = ray.data.from_arrow(list(items))
    _quiet(dataset.context)
    answers = dataset.map_batches(
        worker,  # pyright: ignore[reportArgumentType]
        batch_size=None,
        batch_format="pyarrow",
        compute=ActorPoolStrategy(size=size),
        fn_constructor_args=list(arguments),
        num_cpus=ACTOR_CPUS,
        num_gpus=gpus or None,
    )
    with _bar() as bar:
        task = bar.add_task(title, total=len(items))
        try:
            for answer in answers.iter_batches(batch_size=None, batch_format="pyarrow", prefetch_batches=0):
                bar.advance(task)
                yield answer
        except RayTaskError as error:
            if isinstance(error.cause, PreplayError):
                raise error.cause from None
            raise


def _quiet(context: ray.data.DataContext) -> None:
    """Our own progress bar instead of Ray's, and a worker's error as it was raised."""
    context.enable_progress_bars = False
    context.print_on_execution_start = False
    context.raise_original_map_exception = True
    logging.getLogger("ray.data").setLevel(logging.ERROR)


def _bar() -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    return Progress(*columns, transient=True)
