"""A critic as a replica holds it: scorer, encoder and controller, in a bounded amount of memory."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from preplay.artifacts import open_artifact
from preplay.control import Controller, ControllerConfig
from preplay.critics import ActionEncoder, Critic, RewardClassifier, load_scorer, saved_encoder
from preplay.embedding import CachedEncoder, EncoderFingerprint
from preplay_serve._config import ControllerSettings, ServerConfig

_INFINITE = float("inf")


@dataclass(frozen=True)
class ServedCritic:
    """A loaded critic, or the plain classifier."""

    version: str
    scorer: Critic | RewardClassifier
    encoder: ActionEncoder

    def controller(self, settings: ControllerSettings) -> Controller:
        """A controller for it."""
        least, most = settings.threshold, settings.max_distance
        config = ControllerConfig(
            threshold=-_INFINITE if least is None else least,
            caution=settings.caution,
            max_distance=_INFINITE if most is None else most,
            abstain=settings.abstain,
            fallback=settings.fallback,
        )
        return Controller(self.scorer, self.encoder, config)

    @property
    def encoder_id(self) -> str:
        """What made the arrays: the sentence encoder with the start of its weights' hash, or structure alone."""
        fingerprint = self.scorer.fingerprint
        return f"{fingerprint.model}@{fingerprint.weights_sha256[:12]}" if fingerprint else "structure"


class BoundedEncoder(CachedEncoder):
    """A cached encoder that starts anew when it has seen too many texts, so that a server's memory stays flat."""

    most_texts = 50_000

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Unit vectors float32 [n, D]."""
        if len(self.texts) + len(texts) > self.most_texts:
            self.forget()
        return super().encode(texts)


def load_served_critic(
    path: str, config: ServerConfig, *, encoders: dict[str, BoundedEncoder]
) -> ServedCritic:
    """Load a critic; sentence encoders are shared among critics by their fingerprint through ``encoders``.

    Raises:
        PreplayError: When the critic is damaged or the configured encoder is not the one it was trained with.
    """
    critic = load_scorer(path)
    sentence = _encoder(critic.fingerprint, config, encoders) if critic.fingerprint else None
    version = open_artifact(path, "critic").manifest.content_hash
    return ServedCritic(version, critic, saved_encoder(path, sentence))


def _encoder(
    fingerprint: EncoderFingerprint, config: ServerConfig, encoders: dict[str, BoundedEncoder]
) -> BoundedEncoder:
    key = hashlib.sha256(fingerprint.model_dump_json().encode()).hexdigest()
    if key not in encoders:
        settings = config.encoder.model_copy(
            update={"dtype": fingerprint.dtype, "max_tokens": fingerprint.max_tokens}
        )
        encoder = BoundedEncoder(settings, expect=fingerprint)
        encoder.most_texts = config.scoring.remembered_texts
        encoder.encode(["warm"])  # loads the model now and refuses one that is not the critic's
        encoders[key] = encoder
    return encoders[key]
