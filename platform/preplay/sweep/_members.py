"""Final training of chosen configurations, one Ray task per member, and the artifact that holds them all."""

import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import ray
import yaml

from preplay.artifacts import write_artifact
from preplay.sweep._space import nested

KIND = "ensemble"


@dataclass(frozen=True)
class Member:
    """One chosen trial, to be trained to the end.

    Args:
        trial: Number of the trial it comes from.
        config: Its configuration.
        parameters: What was searched.
        seed: Of its final training.
    """

    trial: int
    config: Any
    parameters: dict[str, Any]
    seed: int


@dataclass(frozen=True)
class Product:
    """What a sweep makes of its best trials.

    Args:
        members: Chosen trials.
        shared: Reference to the data in the object store.
        inputs: Content hashes of the data.
        config: What the artifact's manifest says about the sweep.
        metrics: What its manifest says about the selection.
        cpus, gpus: Resources per member.
    """

    members: list[Member]
    shared: Any
    inputs: dict[str, str]
    config: dict[str, Any]
    seed: int
    metrics: dict[str, Any] = field(default_factory=dict)
    cpus: float = 1.0
    gpus: float = 0.0

    def manifest_members(self) -> list[dict[str, Any]]:
        """Members as the manifest names them."""
        return [
            {
                "trial": m.trial,
                "seed": m.seed,
                "parameters": m.parameters,
                "config": m.config.model_dump(mode="json"),
            }
            for m in self.members
        ]


TrainMember = Callable[[Any, Any, int, dict[str, str], Path], dict[str, float]]
"""Trains one member on the shared data and writes an artifact to the path; returns figures."""


def train_members(product: Product, target: Path | str, train: TrainMember) -> dict[str, Any]:
    """Train all members side by side and write them as ``member-0`` ... of one artifact of kind ``ensemble``.

    Files travel through the object store, so workers need not reach ``target``.
    """
    task = ray.remote(num_cpus=product.cpus, num_gpus=product.gpus, max_retries=3)(_member_files)
    jobs = [task.remote(train, product.shared, m.config, m.seed, product.inputs) for m in product.members]
    config = product.config | {"members": product.manifest_members()}
    figures = []
    with write_artifact(target, KIND, config=config, inputs=product.inputs, seed=product.seed) as staging:
        for number, job in enumerate(jobs):
            files, metrics = ray.get(job)
            figures.append(metrics)
            for name, content in files.items():
                path = staging.path / f"member-{number}" / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
        found = {"members": figures} | product.metrics
        staging.metrics |= found
    return found


def publish_settings(product: Product, target: Path | str, place: str) -> dict[str, Any]:
    """Where a model cannot be kept: the first member's configuration as ``settings.yaml``, for `--config`."""
    chosen = product.members[0].config.model_dump(mode="json")
    config = product.config | {"members": product.manifest_members()}
    with write_artifact(
        target, "settings", config=config, inputs=product.inputs, seed=product.seed
    ) as staging:
        text = yaml.safe_dump(nested({place: chosen}) if place else chosen, sort_keys=False)
        (staging.path / "settings.yaml").write_text(text)
        staging.metrics |= product.metrics
    return product.metrics


def _member_files(
    train: TrainMember, shared: Any, config: Any, seed: int, inputs: dict[str, str]
) -> tuple[dict[str, bytes], dict[str, float]]:
    """One member's files as bytes; runs in a Ray worker."""
    import torch

    torch.set_num_threads(1)
    folder = Path(tempfile.mkdtemp(prefix="preplay-member-"))
    try:
        metrics = train(shared, config, seed, inputs, folder / "member")
        files = sorted(f for f in (folder / "member").rglob("*") if f.is_file())
        return {f.relative_to(folder / "member").as_posix(): f.read_bytes() for f in files}, metrics
    finally:
        shutil.rmtree(folder, ignore_errors=True)
