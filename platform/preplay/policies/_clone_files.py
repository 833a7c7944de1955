"""Cloned policies as artifacts: safetensors for numbers, Parquet for the actions."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from safetensors.numpy import load_file, save_file

from preplay.artifacts import open_artifact, write_artifact
from preplay.embedding import EncoderFingerprint
from preplay.policies._clone import CloneData, ClonedPolicy, TextEncoder
from preplay.policies._clone_space import CloneSpace, StateBlocks

KIND = "cloned-policy"
_WEIGHTS = ("previous_weight", "turn_weight", "predicted_weight", "temperature")


def save_clone(policy: ClonedPolicy, uri: str | Path, inputs: dict[str, str] | None = None) -> None:
    """Write a clone; ``inputs`` are the content hashes of what it was fitted from."""
    data, space = policy.data, policy.space
    config = {
        "name": policy.name,
        "space": {key: getattr(space, key) for key in _WEIGHTS},
        "fingerprint": policy.fingerprint.model_dump(),
    }
    arrays = {
        "observation": data.blocks.observation,
        "previous": data.blocks.previous,
        "task": data.blocks.task,
        "turn": data.blocks.turn,
        "action": data.action_embedding,
        "coefficients": space.coefficients,
        "mean_action": space.mean_action,
    }
    with write_artifact(uri, KIND, config=config, inputs=inputs) as staging:
        save_file({k: np.ascontiguousarray(v) for k, v in arrays.items()}, staging.path / "clone.safetensors")
        pq.write_table(
            pa.table({"action": data.actions, "session_id": data.session}), staging.path / "actions.parquet"
        )


def load_clone(uri: str | Path, encoder: TextEncoder) -> ClonedPolicy:
    """Read a clone; ``encoder`` must be the one it was fitted with."""
    artifact = open_artifact(uri, KIND)
    config = artifact.manifest.config
    arrays = load_file(artifact.file("clone.safetensors"))
    blocks = StateBlocks(*(arrays[key] for key in ("observation", "previous", "task", "turn")))
    remembered = pq.read_table(artifact.file("actions.parquet")).to_pydict()
    return ClonedPolicy(
        config["name"],
        CloneData(remembered["action"], blocks, arrays["action"], remembered["session_id"]),
        CloneSpace(**config["space"], coefficients=arrays["coefficients"], mean_action=arrays["mean_action"]),
        encoder,
        EncoderFingerprint(**config["fingerprint"]),
    )
