"""Turns to the same turns with embeddings, on Ray; a text is computed once and read from the cache ever after."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import torch

from preplay.artifacts import Artifact, open_artifact, write_artifact
from preplay.embedding._cache import EmbeddingCache, text_key
from preplay.embedding._cached import CachedEncoder
from preplay.embedding._config import EncoderConfig
from preplay.embedding._encoder import load_encoder
from preplay.embedding._fingerprint import encoder_fingerprint
from preplay.embedding._types import EmbeddedTurns, EncoderFingerprint, TextBank, check_fingerprint
from preplay.errors import PreplayError
from preplay.logs import load_turns
from preplay.stage import run_stage

KIND = "embedded"
_FINGERPRINT = b"preplay.encoder"
_COLUMNS = ("observation", "action", "next_observation", "task")
_BLOCK_TEXTS, _BLOCK_CHARS = 512, 65_536


def embed_dataset(
    dataset_uri: str | Path,
    output_uri: str | Path,
    config: EncoderConfig | None = None,
    *,
    cache_dir: str | Path,
    actors: int | None = None,
) -> Artifact:
    """Embed every distinct text of a dataset and write turns and texts as an artifact.

    Args:
        dataset_uri: Artifact of kind ``dataset``.
        output_uri: Where the artifact of kind ``embedded`` goes: ``turns.parquet`` (the turns and, per turn, the
            rows of its texts in the bank) and ``texts.parquet`` (the bank: text, embedding).
        cache_dir: Content-addressed cache that runs and datasets share; all actors must reach it.
        actors: Encoders at work; by default one per CPU, or per GPU where there are any.
    """
    dataset = open_artifact(dataset_uri, "dataset")
    turns = load_turns(dataset_uri).sort_by([("session_id", "ascending"), ("turn", "ascending")])
    config = (config or EncoderConfig()).resolved()
    root = _absolute(cache_dir)
    fingerprint = encoder_fingerprint(config, root)
    cache = EmbeddingCache(root, fingerprint)
    texts, ids = distinct_texts(turns)
    embeddings, metrics = embed_texts(texts.to_pylist(), config, cache, fingerprint, actors=actors)
    settings = {"encoder": config.model_dump(mode="json"), "fingerprint": fingerprint.model_dump(mode="json")}
    inputs = {"dataset": dataset.manifest.content_hash}
    with write_artifact(output_uri, KIND, config=settings, inputs=inputs) as staging:
        _write(staging.path, turns, ids, texts, embeddings, fingerprint)
        staging.metrics |= metrics | {"turns": turns.num_rows}
    return open_artifact(output_uri, KIND)


def load_embedded(uri: str | Path, expect: EncoderFingerprint | None = None) -> EmbeddedTurns:
    """Read an embedded dataset.

    Raises:
        PreplayError: When it is missing or damaged, or was made by another encoder than ``expect``.
    """
    artifact = open_artifact(uri, KIND)
    turns = pq.read_table(artifact.file("turns.parquet"), memory_map=True)
    bank = pq.read_table(artifact.file("texts.parquet"), memory_map=True)
    fingerprint = EncoderFingerprint.model_validate_json(bank.schema.metadata[_FINGERPRINT])
    check_fingerprint(fingerprint, expect, where=str(uri))
    flat = bank["embedding"].combine_chunks().flatten().to_numpy(zero_copy_only=False)
    ids = {f"{c}_id": turns[f"{c}_id"].to_numpy() for c in _COLUMNS}
    return EmbeddedTurns(
        turns=turns.drop_columns(list(ids)),
        bank=TextBank(bank["text"].to_pylist(), flat.reshape(-1, fingerprint.dimension)),
        fingerprint=fingerprint,
        **ids,
    )


def encoder_config(artifact: Artifact) -> EncoderConfig:
    """The encoder an embedded dataset was made with: for texts that are to be compared with it."""
    return EncoderConfig.model_validate(artifact.manifest.config["encoder"])


def distinct_texts(turns: pa.Table) -> tuple[pa.Array, dict[str, np.ndarray]]:
    """The distinct texts in the order of their first appearance, and per column the row of each turn's text.

    Rows are int64 [R], -1 where the text is null.
    """
    columns = {name: turns[name].cast(pa.large_string()) for name in _COLUMNS}
    chunks = [chunk for column in columns.values() for chunk in column.chunks]
    texts = pa.chunked_array(chunks, pa.large_string()).unique().drop_null()
    ids = {f"{name}_id": _positions(column, texts) for name, column in columns.items()}
    return texts, ids


def _positions(column: pa.ChunkedArray, texts: pa.Array) -> np.ndarray:
    positions = pc.call_function("index_in", [column], pc.SetLookupOptions(value_set=texts))
    return positions.fill_null(-1).to_numpy().astype(np.int64)


def embed_texts(
    texts: Sequence[str],
    config: EncoderConfig,
    cache: EmbeddingCache,
    fingerprint: EncoderFingerprint,
    *,
    actors: int | None = None,
) -> tuple[np.ndarray, dict[str, int]]:
    """Embeddings float32 [n, D] of distinct texts, and how many came from the cache."""
    found = cache.find(texts)
    missing = [text for text in texts if text_key(text) not in found.rows]
    items = [pa.table({"text": block}) for block in length_sorted_blocks(missing)]
    arguments = (config, cache, fingerprint)
    gpus = 1 if config.device == "cuda" else 0
    done = run_stage(_EmbedBlock, arguments, items, title="Embedding texts", actors=actors, gpus=gpus)
    fresh = cache.find(missing, [shard for answer in done for shard in answer["shard"].to_pylist()])
    if fresh.damaged:
        raise PreplayError(
            "a shard that was just written is damaged.", where=fresh.damaged[0], fix="Run again."
        )
    rows = found.rows | {key: row + len(found.rows) for key, row in fresh.rows.items()}
    order = [rows[text_key(text)] for text in texts]
    metrics = {"texts": len(texts), "from_cache": len(found.rows), "damaged_shards": len(found.damaged)}
    return np.concatenate([found.embeddings, fresh.embeddings])[order], metrics


def embedded_encoder(
    texts: Sequence[str], config: EncoderConfig, cache_dir: str | Path, *, actors: int | None = None
) -> CachedEncoder:
    """An encoder that knows these distinct texts already: they are embedded on Ray, or found in the cache."""
    config = config.resolved()
    root = _absolute(cache_dir)
    fingerprint = encoder_fingerprint(config, root)
    cache = EmbeddingCache(root, fingerprint)
    embeddings, _ = embed_texts(texts, config, cache, fingerprint, actors=actors)
    return CachedEncoder(config, TextBank(list(texts), embeddings), cache=cache, expect=fingerprint)


def length_sorted_blocks(texts: Sequence[str]) -> list[list[str]]:
    """Cut texts into blocks of similar length and bounded size, the longest first so that actors end together."""
    blocks: list[list[str]] = []
    room = 0
    for text in sorted(texts, key=lambda t: (-len(t), t)):
        if not blocks or len(blocks[-1]) == _BLOCK_TEXTS or room < len(text):
            blocks.append([])
            room = _BLOCK_CHARS
        blocks[-1].append(text)
        room -= len(text)
    return blocks


class _EmbedBlock:
    """Actor: embeds a block and puts it into the cache itself, so that a kill loses the block in flight only."""

    def __init__(self, config: EncoderConfig, cache: EmbeddingCache, expect: EncoderFingerprint):
        torch.set_num_threads(1)  # two threads in one process are slower than two processes
        self._encoder, self._cache = load_encoder(config), cache
        check_fingerprint(self._encoder.fingerprint, expect, where="an embedding actor")

    def __call__(self, item: pa.Table) -> pa.Table:
        texts = item["text"].to_pylist()
        shard = self._cache.find_block(texts)  # there when the predecessor was killed before it could answer
        return pa.table({"shard": [shard or self._cache.add(texts, self._encoder.encode(texts))]})


def _write(
    folder: Path,
    turns: pa.Table,
    ids: dict[str, np.ndarray],
    texts: pa.Array,
    embeddings: np.ndarray,
    fingerprint: EncoderFingerprint,
) -> None:
    metadata = {_FINGERPRINT: fingerprint.model_dump_json().encode()}
    for name, rows in ids.items():
        turns = turns.append_column(name, pa.array(rows))
    turns = turns.replace_schema_metadata((turns.schema.metadata or {}) | metadata)
    pq.write_table(turns, folder / "turns.parquet", compression="zstd")
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(embeddings.reshape(-1)), embeddings.shape[1])
    bank = pa.table({"text": texts, "embedding": vectors}).replace_schema_metadata(metadata)
    pq.write_table(bank, folder / "texts.parquet", compression="none", use_dictionary=False)


def _absolute(uri: str | Path) -> str:
    return str(uri) if "://" in str(uri) else str(Path(uri).absolute())
