"""An ensemble of world models: one Ray task per member, each a finished artifact of its own."""

import shutil
from collections.abc import Callable
from pathlib import Path

import ray

from preplay.artifacts import Artifact, open_artifact, read_manifest, write_artifact
from preplay.embedding import load_embedded
from preplay.errors import PreplayError
from preplay.seeding import derive_seed
from preplay.world_model._config import WorldModelConfig
from preplay.world_model._fidelity import Fidelity, measure_fidelity
from preplay.world_model._model import KIND, save_world_model
from preplay.world_model._train import stored_config, tool_call_reader, train_world_model

MemberDone = Callable[[Path, Fidelity], None]


def train_ensemble(
    embedded_uri: str | Path,
    folder: str | Path,
    config: WorldModelConfig,
    *,
    members: int,
    seed: int,
    without: tuple[str, ...] = (),
    on_member: MemberDone = lambda path, fidelity: None,
) -> list[Path]:
    """Train ``members`` world models into ``folder/member-0`` ...; finished members are kept as they are.

    Sessions of the policies in ``without`` are left out. Ray must be running. Each member is one task on one CPU
    (and a GPU share where the cluster has GPUs).
    """
    folder = Path(folder).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    gpus = ray.cluster_resources().get("GPU", 0) if config.resolved_device() == "cuda" else 0
    task = ray.remote(num_cpus=1, num_gpus=min(1.0, gpus / members), max_retries=3)(_train_member)
    pending = {}
    for member in range(members):
        path = folder / f"member-{member}"
        job = task.remote(str(embedded_uri), str(path), config, derive_seed(seed, "member", member), without)
        pending[job] = path
    paths = list(pending.values())
    while pending:
        (done,), _ = ray.wait(list(pending), num_returns=1)
        path = pending.pop(done)
        on_member(path, Fidelity.model_validate(ray.get(done)))
    return paths


def list_members(folder: str | Path) -> list[Path]:
    """The finished members of an ensemble, in order.

    Args:
        folder: What `preplay train` wrote, or an ensemble that a sweep published: its path, URI or ``models:NAME``.

    Raises:
        PreplayError: When there is none.
    """
    elsewhere = ":" in str(folder)
    root = open_artifact(folder, "ensemble").path if elsewhere else Path(folder)
    found = sorted(root.glob("member-*/manifest.json"), key=lambda p: int(p.parent.name.split("-")[1]))
    if not found:
        raise PreplayError(
            "no trained world model here.",
            where=str(folder),
            fix="Run `preplay train` first, or check the path.",
        )
    return [manifest.parent for manifest in found]


def member_fidelity(path: str | Path) -> Fidelity:
    """The fidelity that was measured when a member was trained."""
    return Fidelity.model_validate(read_manifest(path).metrics["fidelity"])


def _train_member(
    embedded_uri: str, path: str, config: WorldModelConfig, seed: int, without: tuple[str, ...]
) -> dict:
    """Train one member unless it stands there finished; runs in a Ray worker."""
    import torch

    torch.set_num_threads(1)
    source: Artifact = open_artifact(embedded_uri, "embedded")
    inputs = {"embedded": source.manifest.content_hash}
    asked = {"asked": config.model_dump(mode="json"), "seed": seed, "without": list(without)}
    if (Path(path) / "manifest.json").exists():
        manifest = read_manifest(path)
        if manifest.inputs == inputs and manifest.config["request"] == asked:
            open_artifact(path, KIND)
            return manifest.metrics["fidelity"]
    data = load_embedded(embedded_uri).without_policies(without)
    checkpoints = Path(f"{path}.partial") / inputs["embedded"][:12]
    reader = tool_call_reader(data) if config.structure else None
    trained = train_world_model(data, config, seed=seed, reader=reader, checkpoints=checkpoints)
    fidelity = measure_fidelity(trained.model, data.bank.embeddings, trained.turns, seed=seed, reader=reader)
    stored = stored_config(trained.model, data.fingerprint.model_dump()) | {"request": asked}
    with write_artifact(path, KIND, config=stored, inputs=inputs, seed=seed) as staging:
        save_world_model(trained.model, staging)
        staging.metrics |= {
            "fidelity": fidelity.model_dump(mode="json"),
            "training": {name: vars(trace) for name, trace in trained.traces.items()},
        }
    shutil.rmtree(f"{path}.partial", ignore_errors=True)
    return fidelity.model_dump(mode="json")
