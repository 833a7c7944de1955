"""A trained critic: scores of candidates, and the artifact it lives in."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save_file

from preplay.artifacts import Artifact, open_artifact, write_artifact
from preplay.critics._config import CriticConfig
from preplay.critics._encoder import FEATURE_VERSION, ActionEncoder, EncodedPools
from preplay.critics._network import ActionNet, NetworkSize, StateNet, TwinQ
from preplay.critics._scaler import Scaler
from preplay.embedding import CachedEncoder, EncoderFingerprint, check_fingerprint
from preplay.errors import PreplayError

KIND = "critic"
_WEIGHTS = "critic.safetensors"


@dataclass(frozen=True)
class Member:
    """Networks of one member; which of them were trained depends on the algorithm."""

    q: TwinQ
    v: StateNet
    actor: ActionNet


@dataclass(frozen=True)
class Scores:
    """Per candidate, float64 [M]: mean score of the members and their standard deviation (NaN for one member)."""

    mean: np.ndarray
    spread: np.ndarray


@dataclass(frozen=True)
class Critic:
    """Scores candidates: by Q for ``iql`` and ``cql``, by the actor's logits for the others."""

    config: CriticConfig
    size: NetworkSize
    scaler: Scaler
    reward_scale: np.ndarray
    members: list[Member]
    feature_names: tuple[str, ...] = ()
    fingerprint: EncoderFingerprint | None = None

    def score(self, pools: EncodedPools, weights: Sequence[float] | None = None) -> Scores:
        """Scores of all candidates.

        Args:
            pools: Encoded by the encoder the critic was trained with.
            weights: Weight of each reward head, in place of the configuration's: the goal of this context.

        Raises:
            PreplayError: When the arrays are not of the shape that the critic was trained on.
        """
        all_scores = np.stack([self._combine(values, weights) for values in self.values(pools)])
        spread = (
            all_scores.std(axis=0, ddof=1) if len(all_scores) > 1 else np.full(all_scores.shape[1], np.nan)
        )
        return Scores(all_scores.mean(axis=0), spread)

    @torch.inference_mode()
    def values(self, pools: EncodedPools) -> list[np.ndarray]:
        """Per member, values in units of the reward, float64 [M, H] (logits [M, 1] for actors)."""
        self._check(pools)
        inputs = self.scaler.inputs(pools)
        if self.config.has_actor:
            return [member.actor(inputs).double().numpy() for member in self.members]
        return [member.q(inputs).double().numpy() * self.reward_scale for member in self.members]

    @torch.inference_mode()
    def state_values(self, pools: EncodedPools) -> np.ndarray:
        """V(s) of IQL and AWR, the mean over members, float64 [N, H]."""
        if self.config.algorithm not in ("iql", "awr"):
            raise PreplayError(
                f"{self.config.algorithm!r} has no value function of states.", fix="Train 'iql'."
            )
        inputs = self.scaler.inputs(pools).rows(torch.tensor(pools.offsets[:-1]))
        return (
            np.mean([member.v(inputs).double().numpy() for member in self.members], axis=0)
            * self.reward_scale
        )

    def state_distance(self, pools: EncodedPools) -> np.ndarray:
        """Distance of each state from the training data, float64 [N]."""
        return self.scaler.distance(pools)

    def check_encoder(self, fingerprint: EncoderFingerprint | None, *, where: str) -> None:
        """Refuse embeddings of another encoder, naming both."""
        if (fingerprint is None) != (self.fingerprint is None):
            names = [f.model if f else "structure alone" for f in (fingerprint, self.fingerprint)]
            raise PreplayError(
                f"the critic was trained on {names[1]!r}, the data come from {names[0]!r}.",
                where=where,
                fix="Use the encoder the critic was trained with, or train again.",
            )
        if fingerprint is not None:
            check_fingerprint(fingerprint, self.fingerprint, where=where)

    def _check(self, pools: EncodedPools) -> None:
        found = (pools.state.shape[1], pools.features.shape[1], pools.state_embedding.shape[1])
        needed = (self.size.state, self.size.features, self.size.embedding)
        if found != needed:
            raise PreplayError(
                f"(state, features, embedding) have widths {found}, the critic needs {needed}.",
                fix="Encode with the settings the critic was trained with.",
            )

    def _combine(self, values: np.ndarray, weights: Sequence[float] | None) -> np.ndarray:
        chosen = weights if weights is not None else self.config.weights
        if values.shape[1] == 1 or not len(chosen):
            return values.sum(axis=1)
        if len(chosen) != values.shape[1]:
            raise PreplayError(f"{len(chosen)} weights for {values.shape[1]} reward heads.")
        return values @ np.asarray(chosen, np.float64)


def save_critic(
    critic: Critic,
    uri: str | Path,
    *,
    encoder: ActionEncoder | None = None,
    inputs: dict[str, str] | None = None,
    metrics: dict[str, Any] | None = None,
) -> Artifact:
    """Write a critic as an artifact of kind ``critic``, with the settings of its encoder where they are given."""
    config = {
        "critic": critic.config.model_dump(mode="json"),
        "size": asdict(critic.size),
        "feature_version": FEATURE_VERSION,
        "feature_names": list(critic.feature_names),
        "fingerprint": critic.fingerprint.model_dump(mode="json") if critic.fingerprint else None,
        "encoder": encoder.settings() if encoder else None,
    }
    with write_artifact(uri, KIND, config=json.loads(json.dumps(config)), inputs=inputs) as staging:
        save_file(_tensors(critic), staging.path / _WEIGHTS)
        staging.metrics |= metrics or {}
    return open_artifact(uri, KIND)


def load_critic(uri: str | Path, expect: EncoderFingerprint | None = None) -> Critic:
    """Read a critic.

    Raises:
        PreplayError: When it is missing or damaged, of another feature version, or trained on another encoder than
            ``expect``; the message names both encoders.
    """
    artifact = open_artifact(uri, KIND)
    config = artifact.manifest.config
    if "critic" not in config:
        raise PreplayError("this is a classifier, not a critic.", where=str(uri), fix="Train a critic.")
    check_features(config, uri)
    fingerprint = EncoderFingerprint.model_validate(config["fingerprint"]) if config["fingerprint"] else None
    if expect is not None and fingerprint is not None:
        check_fingerprint(fingerprint, expect, where=str(uri))
    tensors = load_file(artifact.file(_WEIGHTS))
    settings, size = CriticConfig.model_validate(config["critic"]), NetworkSize(**config["size"])
    members = [_member(size, tensors, i) for i in range(settings.members)]
    scaler = Scaler(*(tensors[f"scaler.{name}"].numpy() for name in Scaler.__dataclass_fields__))
    scale = tensors["reward_scale"].double().numpy()
    return Critic(settings, size, scaler, scale, members, tuple(config["feature_names"]), fingerprint)


def check_features(config: dict[str, Any], uri: str | Path) -> None:
    """Refuse an artifact that was trained on features of another version."""
    if config["feature_version"] != FEATURE_VERSION:
        raise PreplayError(
            f"the critic reads features of version {config['feature_version']}, not {FEATURE_VERSION} as made here.",
            where=str(uri),
            fix="Train it again.",
        )


def saved_encoder(uri: str | Path, encoder: CachedEncoder | None = None) -> ActionEncoder:
    """The action encoder that a critic was saved with.

    Args:
        encoder: Sentence encoder to use; by default the one that the critic was trained with is loaded where there
            was one.
    """
    config = open_artifact(uri, KIND).manifest.config
    settings = config.get("encoder")
    if settings is None:
        raise PreplayError("the critic was saved without its encoder's settings.", where=str(uri))
    made_by = config["fingerprint"]
    fingerprint = EncoderFingerprint.model_validate(made_by) if made_by else None
    return ActionEncoder.from_settings(settings, encoder, fingerprint)


def _tensors(critic: Critic) -> dict[str, torch.Tensor]:
    tensors = {f"scaler.{name}": torch.tensor(value) for name, value in vars(critic.scaler).items()}
    tensors["reward_scale"] = torch.tensor(critic.reward_scale)
    for number, member in enumerate(critic.members):
        for part in ("q", "v", "actor"):
            state = getattr(member, part).state_dict()
            tensors |= {f"{number}.{part}.{name}": value.contiguous() for name, value in state.items()}
    return tensors


def _member(size: NetworkSize, tensors: dict[str, torch.Tensor], number: int) -> Member:
    size = replace(
        size, width=tensors[f"{number}.q.first.structure.weight"].shape[0]
    )  # joined critics differ
    actor = ActionNet(NetworkSize(size.state, size.features, size.embedding, size.width, 1))
    parts = {"q": TwinQ(size), "v": StateNet(size, size.outputs), "actor": actor}
    for name, network in parts.items():
        prefix = f"{number}.{name}."
        network.load_state_dict(
            {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}
        )
        network.eval()
    return Member(parts["q"], parts["v"], parts["actor"])
