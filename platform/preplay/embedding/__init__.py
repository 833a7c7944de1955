"""Embedding of logged texts on Ray Data: every distinct text once, kept in a cache that all runs share."""

from preplay.embedding._cache import EmbeddingCache
from preplay.embedding._cached import CachedEncoder
from preplay.embedding._config import PACKAGED_MODEL, EncoderConfig, language_warning
from preplay.embedding._dataset import (
    embed_dataset,
    embed_texts,
    embedded_encoder,
    encoder_config,
    load_embedded,
)
from preplay.embedding._encoder import Encoder, load_encoder
from preplay.embedding._types import EmbeddedTurns, EncoderFingerprint, TextBank, check_fingerprint

__all__ = [
    "PACKAGED_MODEL",
    "CachedEncoder",
    "EmbeddedTurns",
    "EmbeddingCache",
    "Encoder",
    "EncoderConfig",
    "EncoderFingerprint",
    "TextBank",
    "check_fingerprint",
    "embed_dataset",
    "embed_texts",
    "embedded_encoder",
    "encoder_config",
    "language_warning",
    "load_embedded",
    "load_encoder",
]
