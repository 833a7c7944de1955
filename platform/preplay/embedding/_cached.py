"""An encoder that remembers: for loops that meet the same texts again and again."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from preplay.embedding._cache import EmbeddingCache, text_key
from preplay.embedding._config import EncoderConfig
from preplay.embedding._encoder import Encoder, load_encoder
from preplay.embedding._types import EncoderFingerprint, TextBank, check_fingerprint


class CachedEncoder:
    """Embeddings by text id; the model is loaded only when a text is neither in the bank nor on disk.

    Ids count texts in the order of their first appearance: ``texts[i]`` and ``embeddings(ids)`` go together.

    Args:
        config: The encoder, as it was resolved when ``bank`` was made.
        bank: Texts that are known from the start; they get the ids 0, 1, ...
        cache: Where other texts are looked up before they are embedded; read whole, once, on the first miss.
            :meth:`flush` adds the new ones.
        expect: Fingerprint of the bank's encoder; a model with another one is refused.
    """

    def __init__(
        self,
        config: EncoderConfig,
        bank: TextBank | None = None,
        *,
        cache: EmbeddingCache | None = None,
        expect: EncoderFingerprint | None = None,
    ):
        self._config, self._cache, self._expect = config, cache, expect
        self.texts: list[str] = list(bank.texts) if bank else []
        self._index = {text: i for i, text in enumerate(self.texts)}
        self._rows = bank.embeddings if bank else np.empty((0, 0), np.float32)
        self._encoder: Encoder | None = None
        self._on_disk: tuple[dict[bytes, int], np.ndarray] | None = None
        self._fresh: list[int] = []

    def __getstate__(self) -> dict[str, Any]:
        """Without the model: an actor that gets a copy loads it again, if it has to."""
        return self.__dict__ | {"_encoder": None}

    @property
    def config(self) -> EncoderConfig:
        """How the model is loaded and run."""
        return self._config

    @property
    def fingerprint(self) -> EncoderFingerprint:
        """Which encoder this is."""
        return self._expect or self._model().fingerprint

    def ids(self, texts: Sequence[str]) -> np.ndarray:
        """Id of each text, int64 [n]; new texts are embedded first."""
        try:
            return self._known(texts)
        except KeyError:
            self._learn(list(dict.fromkeys(text for text in texts if text not in self._index)))
            return self._known(texts)

    def _known(self, texts: Sequence[str]) -> np.ndarray:
        return np.fromiter(map(self._index.__getitem__, texts), np.int64, len(texts))

    def embeddings(self, ids: np.ndarray) -> np.ndarray:
        """Unit vectors float32 [n, D] of these ids."""
        return self._rows[ids]

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Unit vectors float32 [n, D]."""
        return self.embeddings(self.ids(texts))

    def flush(self) -> None:
        """Write what the model computed since the last call to the cache on disk."""
        if self._cache and self._fresh:
            self._cache.add([self.texts[i] for i in self._fresh], self.embeddings(np.array(self._fresh)))
        self._fresh = []

    def forget(self) -> None:
        """Drop every text and its embedding; the model stays loaded. Ids count from 0 again."""
        self.texts, self._index, self._fresh = [], {}, []
        self._rows = np.empty((0, 0), np.float32)

    def _learn(self, texts: list[str]) -> None:
        rows, embeddings = self._disk()
        keys = [text_key(text) for text in texts]
        known = [i for i, key in enumerate(keys) if key in rows]
        if known:
            self._append([texts[i] for i in known], embeddings[[rows[keys[i]] for i in known]])
        new = [text for text in texts if text not in self._index]
        if new:
            self._fresh += range(len(self.texts), len(self.texts) + len(new))
            self._append(new, self._model().encode(new))

    def _disk(self) -> tuple[dict[bytes, int], np.ndarray]:
        if self._on_disk is None:
            found = self._cache.find(None) if self._cache else None
            self._on_disk = (found.rows, found.embeddings) if found else ({}, self._rows)
        return self._on_disk

    def _append(self, texts: list[str], rows: np.ndarray) -> None:
        start, end = len(self.texts), len(self.texts) + len(texts)
        if end > len(self._rows):  # grown by doubling, so that a row is copied twice at most on average
            grown = np.empty((max(end, 2 * start), rows.shape[1]), np.float32)
            if start:
                grown[:start] = self._rows[:start]
            self._rows = grown
        self._rows[start:end] = rows
        self._index.update(zip(texts, range(start, end), strict=True))
        self.texts += texts

    def _model(self) -> Encoder:
        if self._encoder is None:
            self._encoder = load_encoder(self._config)
            check_fingerprint(self._encoder.fingerprint, self._expect, where="the encoder of new texts")
        return self._encoder
