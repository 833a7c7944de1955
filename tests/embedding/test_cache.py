from pathlib import Path

import numpy as np
import pytest

from preplay.embedding import CachedEncoder, EmbeddingCache, EncoderConfig, EncoderFingerprint, TextBank
from preplay.embedding._cache import text_key
from preplay.embedding._fingerprint import encoder_fingerprint
from preplay.errors import PreplayError

FINGERPRINT = EncoderFingerprint(
    model="m", weights_sha256="0", pooling="mean", dtype="float32", max_tokens=8, dimension=2
)
ROWS = np.array([[1, 0], [0, 1], [0.6, 0.8]], np.float32)


@pytest.fixture
def cache(tmp_path):
    return EmbeddingCache(str(tmp_path), FINGERPRINT)


def rows_of(cache: EmbeddingCache, texts: list[str]) -> list[list[float] | None]:
    found = cache.find(texts)
    keys = [text_key(text) for text in texts]
    return [found.embeddings[found.rows[k]].tolist() if k in found.rows else None for k in keys]


def test_finds_what_was_added(cache):
    cache.add(["a", "b"], ROWS[:2])
    cache.add(["c"], ROWS[2:])
    assert rows_of(cache, ["c", "x", "a"]) == [ROWS[2].tolist(), None, ROWS[0].tolist()]


def test_everything(cache):
    cache.add(["a", "b"], ROWS[:2])
    cache.add(["b", "c"], ROWS[1:])
    found = cache.find(None)
    assert len(found.rows) == len(found.embeddings) == 3


def test_another_encoder_sees_nothing(cache, tmp_path):
    cache.add(["a"], ROWS[:1])
    other = EmbeddingCache(str(tmp_path), FINGERPRINT.model_copy(update={"dtype": "bfloat16"}))
    assert rows_of(other, ["a"]) == [None]


@pytest.mark.parametrize("damage", ["truncate", "flip", "empty"])
def test_a_damaged_shard_is_reported_and_not_read(cache, damage, caplog):
    cache.add(["a"], ROWS[:1])
    shard = Path(cache.add(["b"], ROWS[1:2]))
    data = bytearray(shard.read_bytes())
    data[len(data) // 2] ^= 1
    shard.write_bytes({"truncate": data[:-20], "flip": data, "empty": b""}[damage])
    found = cache.find(["a", "b"])
    assert found.damaged == [str(shard)]
    assert "is damaged" in caplog.text
    assert rows_of(cache, ["a", "b"]) == [ROWS[0].tolist(), None]
    cache.add(["b"], ROWS[1:2])
    assert rows_of(cache, ["b"]) == [ROWS[1].tolist()]


def test_a_file_left_aside_by_a_kill_is_ignored(cache):
    shard = Path(cache.add(["a"], ROWS[:1]))
    shard.with_name(f".{shard.name}.x1y2").write_bytes(shard.read_bytes()[:100])
    assert rows_of(cache, ["a"]) == [ROWS[0].tolist()]


def test_any_fsspec_uri():
    cache = EmbeddingCache("memory://embedding-cache", FINGERPRINT)
    cache.add(["a"], ROWS[:1])
    assert rows_of(cache, ["a", "b"]) == [ROWS[0].tolist(), None]


def test_fingerprint_is_remembered_by_the_model_folders_content(encoder, tmp_path):
    config = EncoderConfig()
    assert encoder_fingerprint(config, str(tmp_path)) == encoder.fingerprint
    (file,) = (tmp_path / "encoders").iterdir()
    file.write_text(FINGERPRINT.model_dump_json())
    assert encoder_fingerprint(config, str(tmp_path)) == FINGERPRINT
    assert encoder_fingerprint(EncoderConfig(max_tokens=64), str(tmp_path)).max_tokens == 64


def test_cached_encoder_serves_the_bank_without_a_model():
    bank = TextBank(["a", "b"], ROWS[:2])
    cached = CachedEncoder(EncoderConfig(model="no such model"), bank)
    assert cached.ids(["b", "a", "b"]).tolist() == [1, 0, 1]
    assert cached.encode(["b"]).tolist() == [ROWS[1].tolist()]


def test_cached_encoder_learns_and_shares_new_texts(encoder, tmp_path):
    texts = [f"text {i}" for i in range(10)]
    bank = TextBank(texts[:2], encoder.encode(texts[:2]))
    cache = EmbeddingCache(str(tmp_path), encoder.fingerprint)
    first = CachedEncoder(encoder.config, bank, cache=cache, expect=encoder.fingerprint)
    assert first.ids([texts[5], texts[0], texts[5], texts[9]]).tolist() == [2, 0, 2, 3]
    assert (first.encode(texts) == encoder.encode(texts)).all()
    first.flush()
    second = CachedEncoder(EncoderConfig(model="no such model"), cache=cache)
    assert (second.encode(texts[2:]) == first.encode(texts[2:])).all()


def test_cached_encoder_refuses_another_model(encoder):
    cached = CachedEncoder(EncoderConfig(max_tokens=64), expect=encoder.fingerprint)
    with pytest.raises(PreplayError, match="max_tokens is 64 instead of 256"):
        cached.encode(["new"])
