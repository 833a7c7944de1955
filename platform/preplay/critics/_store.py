"""Anything that scores candidates, as one kind of artifact: critics and classifiers are saved and loaded alike."""

from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file, save_file

from preplay.artifacts import Artifact, open_artifact, write_artifact
from preplay.critics._classifier import RewardClassifier
from preplay.critics._critic import KIND, Critic, check_features, load_critic, save_critic
from preplay.critics._encoder import FEATURE_VERSION, ActionEncoder
from preplay.critics._margin import LinearMargin, TreeMargin
from preplay.critics._scaler import Scaler
from preplay.embedding import EncoderFingerprint, check_fingerprint

_WEIGHTS = "classifier.safetensors"
_MARGINS: dict[str, type[LinearMargin] | type[TreeMargin]] = {
    "logistic": LinearMargin,
    "boosting": TreeMargin,
}


def save_scorer(
    scorer: Critic | RewardClassifier,
    uri: str | Path,
    *,
    encoder: ActionEncoder | None = None,
    inputs: dict[str, str] | None = None,
    metrics: dict[str, Any] | None = None,
) -> Artifact:
    """Write a critic or a classifier as an artifact of kind ``critic``, with its encoder's settings."""
    if isinstance(scorer, Critic):
        return save_critic(scorer, uri, encoder=encoder, inputs=inputs, metrics=metrics)
    config = {
        "classifier": {"kind": scorer.kind, "slope": scorer.slope, "intercept": scorer.intercept},
        "feature_version": FEATURE_VERSION,
        "feature_names": list(scorer.feature_names),
        "fingerprint": scorer.fingerprint.model_dump(mode="json") if scorer.fingerprint else None,
        "encoder": encoder.settings() if encoder else None,
    }
    tensors = {f"margin.{name}": np.ascontiguousarray(v) for name, v in vars(scorer.margin).items()}
    tensors |= {f"scaler.{name}": value for name, value in vars(scorer.scaler).items()}
    with write_artifact(uri, KIND, config=config, inputs=inputs) as staging:
        save_file(tensors, staging.path / _WEIGHTS)
        staging.metrics |= metrics or {}
    return open_artifact(uri, KIND)


def saved_algorithm(uri: str | Path) -> str:
    """How the critic or classifier that is saved there was trained: ``iql``, ``logistic``, ..."""
    config = open_artifact(uri, KIND).manifest.config
    return config["classifier"]["kind"] if "classifier" in config else config["critic"]["algorithm"]


def load_scorer(uri: str | Path, expect: EncoderFingerprint | None = None) -> Critic | RewardClassifier:
    """Read what :func:`save_scorer` wrote.

    Raises:
        PreplayError: As :func:`preplay.critics.load_critic`.
    """
    artifact = open_artifact(uri, KIND)
    config = artifact.manifest.config
    if "classifier" not in config:
        return load_critic(uri, expect)
    check_features(config, uri)
    fingerprint = EncoderFingerprint.model_validate(config["fingerprint"]) if config["fingerprint"] else None
    if expect is not None and fingerprint is not None:
        check_fingerprint(fingerprint, expect, where=str(uri))
    tensors, made = load_file(artifact.file(_WEIGHTS)), config["classifier"]
    margin = _MARGINS[made["kind"]]
    return RewardClassifier(
        made["kind"],
        margin(**{field.name: tensors[f"margin.{field.name}"] for field in fields(margin)}),
        Scaler(**{field.name: tensors[f"scaler.{field.name}"] for field in fields(Scaler)}),
        made["slope"],
        made["intercept"],
        tuple(config["feature_names"]),
        fingerprint,
    )
