"""Embedding on Ray, with real kills. Blocks are made small so that a kill finds work in flight."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from preplay.embedding import EncoderConfig, EncoderFingerprint, embed_dataset, encoder_config, load_embedded
from preplay.embedding._dataset import distinct_texts
from preplay.errors import PreplayError
from preplay.logs import write_dataset
from tests._processes import kill_one, wait_for

from . import drive
from .conftest import make_turns, sentences

ACTOR = "ray::MapWorker(MapBatches(_EmbedBlock))"
TEXTS = sentences(257, 16)


@pytest.fixture(scope="module")
def dataset(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("logs") / "dataset"
    write_dataset(make_turns(TEXTS, task="help the customer"), str(path), config={})
    return path


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch):
    monkeypatch.setattr("preplay.embedding._dataset._BLOCK_TEXTS", drive.BLOCK_TEXTS)


def shards(cache: Path) -> dict[str, int]:
    """Name and inode of every finished shard: a block that is done again gets a new inode."""
    return {p.name: p.stat().st_ino for p in cache.glob("*/embeddings-*.parquet")}


@pytest.fixture(scope="module")
def survivor(ray2, dataset, tmp_path_factory):
    """A run whose actor is killed as soon as the first block is on disk."""
    root = tmp_path_factory.mktemp("survivor")

    def kill():
        wait_for(lambda: shards(root / "cache"))
        kill_one(os.getpid(), ACTOR)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("preplay.embedding._dataset._BLOCK_TEXTS", drive.BLOCK_TEXTS)
        killer = threading.Thread(target=kill)
        killer.start()
        artifact = embed_dataset(dataset, root / "embedded", cache_dir=root / "cache", actors=1)
        killer.join()
    return artifact


def test_run_survives_the_kill_of_an_actor(survivor, encoder):
    embedded = load_embedded(survivor.path, expect=encoder.fingerprint)
    assert len(embedded) == 256
    assert len(embedded.bank.texts) == 257 + 2  # "ok" and the task
    assert (embedded.bank.embeddings == encoder.encode(embedded.bank.texts)).all()
    assert len(shards(survivor.path.parent / "cache")) == 9  # 259 texts in blocks of 32, none written twice


def test_ids_point_at_the_turns_texts(survivor):
    embedded = load_embedded(survivor.path)
    texts = np.array(embedded.bank.texts, object)
    for name in ("observation", "action", "next_observation"):
        assert texts[getattr(embedded, f"{name}_id")].tolist() == embedded.turns[name].to_pylist()
    assert embedded.task_id[:4].tolist() == [-1, -1, 258, 258]
    assert embedded.session_starts[:3].tolist() == [0, 2, 4]


def test_driver_killed_and_run_again(ray2, dataset, survivor, tmp_path):
    command = [sys.executable, "-m", "tests.embedding.drive", str(dataset)]
    command += [str(tmp_path / "embedded"), str(tmp_path / "cache")]
    process = subprocess.Popen(command, start_new_session=True, stderr=subprocess.DEVNULL)
    wait_for(lambda: len(shards(tmp_path / "cache")) >= 2 or process.poll() is not None)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    assert not (tmp_path / "embedded").exists()
    before = shards(tmp_path / "cache")
    artifact = embed_dataset(dataset, tmp_path / "embedded", cache_dir=tmp_path / "cache", actors=1)
    assert before.items() <= shards(tmp_path / "cache").items()
    assert artifact.manifest.metrics["from_cache"] >= 2 * drive.BLOCK_TEXTS
    assert artifact.manifest.content_hash == survivor.manifest.content_hash


def test_damaged_shard_is_computed_again(ray2, dataset, survivor, tmp_path):
    cache = survivor.path.parent / "cache"
    shard = sorted(cache.glob("*/embeddings-*.parquet"))[0]
    shard.write_bytes(shard.read_bytes()[:-50])
    artifact = embed_dataset(dataset, tmp_path / "again", cache_dir=cache)
    assert artifact.manifest.metrics["damaged_shards"] == 1
    assert 0 < 259 - artifact.manifest.metrics["from_cache"] <= drive.BLOCK_TEXTS
    assert artifact.manifest.content_hash == survivor.manifest.content_hash


@pytest.mark.parametrize("name", ["texts.parquet", "turns.parquet", "manifest.json"])
def test_truncated_file_is_refused(survivor, tmp_path, name):
    for file in survivor.path.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    (tmp_path / name).write_bytes((survivor.path / name).read_bytes()[:-30])
    with pytest.raises(PreplayError, match=name):
        load_embedded(tmp_path)


def test_another_encoder_is_refused(survivor):
    expect = EncoderFingerprint.model_validate(
        survivor.manifest.config["fingerprint"] | {"model": "bge-small-zh"}
    )
    with pytest.raises(PreplayError, match=r"'all-MiniLM-L6-v2' where 'bge-small-zh' is needed"):
        load_embedded(survivor.path, expect=expect)


def test_the_encoder_can_be_set_up_again_from_the_artifact(survivor):
    config = encoder_config(survivor)
    assert config == EncoderConfig().resolved()
    assert config.dtype != "auto"


def test_distinct_texts_keep_the_order_of_appearance():
    texts, ids = distinct_texts(make_turns(["b", "a", "b", "ok", "c"], task="t"))
    assert texts.to_pylist() == ["b", "a", "ok", "c", "t"]
    assert ids["observation_id"].tolist() == [0, 1, 0, 2]
    assert ids["action_id"].tolist() == [2, 2, 2, 2]
    assert ids["next_observation_id"].tolist() == [1, 0, 2, 3]
    assert ids["task_id"].tolist() == [-1, -1, 4, 4]
