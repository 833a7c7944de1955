"""Embedding of logged texts on Ray Data."""

from preplay.embedding._types import EmbeddedTurns, EncoderFingerprint, TextBank

__all__ = ["EmbeddedTurns", "EncoderFingerprint", "TextBank"]
