import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import fsspec
import pytest

from preplay.artifacts import atomic_write, is_complete, open_artifact, read_manifest, write_artifact
from preplay.errors import PreplayError


def write(uri: str | Path, text: str = "hello", **manifest) -> None:
    with write_artifact(uri, "note", **manifest) as staging:
        (staging.path / "a.txt").write_text(text)
        (staging.path / "deep").mkdir()
        (staging.path / "deep" / "b.txt").write_text("b")
        staging.metrics["words"] = 1


@pytest.fixture
def note(tmp_path) -> Path:
    write(tmp_path / "note", config={"k": (1, 2)}, inputs={"x": "0"}, seed=7)
    return tmp_path / "note"


def test_round_trip(note):
    artifact = open_artifact(note, "note")
    assert artifact.file("a.txt").read_text() == "hello"
    assert artifact.file("deep/b.txt").read_text() == "b"
    manifest = artifact.manifest
    assert (manifest.config, manifest.inputs, manifest.seed) == ({"k": [1, 2]}, {"x": "0"}, 7)
    assert manifest.metrics == {"words": 1}
    assert manifest.files["a.txt"].size == 5
    assert [p.name for p in note.parent.iterdir()] == ["note"]


def test_a_file_that_is_not_in_the_manifest(note):
    with pytest.raises(PreplayError, match=r"has no file 'c\.txt'"):
        open_artifact(note, "note").file("c.txt")


def test_content_hash_is_of_the_content(tmp_path):
    for name, text in [("one", "hello"), ("two", "hello"), ("three", "world")]:
        write(tmp_path / name, text)
    one, two, three = (read_manifest(tmp_path / name).content_hash for name in ("one", "two", "three"))
    assert one == two != three


def test_an_error_publishes_nothing(tmp_path):
    with pytest.raises(ZeroDivisionError), write_artifact(tmp_path / "note", "note") as staging:
        (staging.path / "a.txt").write_text(f"half {1 / 0}")
    assert list(tmp_path.iterdir()) == []


def test_an_error_keeps_what_was_there(note):
    with pytest.raises(RuntimeError), write_artifact(note, "note"):
        raise RuntimeError
    assert open_artifact(note, "note").file("a.txt").read_text() == "hello"


def test_replaces_as_a_whole(note):
    with write_artifact(note, "note") as staging:
        (staging.path / "new.txt").write_text("new")
    assert set(open_artifact(note, "note").manifest.files) == {"new.txt"}
    assert not (note / "a.txt").exists()


def test_missing_and_of_another_kind(note, tmp_path):
    with pytest.raises(PreplayError, match=r"no finished artifact here \(no manifest.json\)"):
        open_artifact(tmp_path / "nothing", "note")
    with pytest.raises(PreplayError, match="this is a 'note', but a 'model' is needed here"):
        open_artifact(note, "model")


def test_truncated_altered_and_deleted_files(note):
    file = note / "a.txt"
    file.write_text("hell")
    with pytest.raises(PreplayError, match=r"a\.txt: the file has 4 bytes instead of 5"):
        open_artifact(note, "note")
    file.write_text("jello")
    with pytest.raises(PreplayError, match="does not match its checksum"):
        open_artifact(note, "note")
    file.unlink()
    with pytest.raises(PreplayError, match="listed in the manifest but missing"):
        open_artifact(note, "note")


@pytest.mark.parametrize("damage", [b"", b"{", b'{"kind": 3}', b"\xff\xfe\x00", b"null"])
def test_damaged_manifest(note, damage):
    (note / "manifest.json").write_bytes(damage)
    with pytest.raises(PreplayError, match="the manifest is damaged"):
        open_artifact(note, "note")


def test_complete_only_for_the_same_config_and_inputs(note):
    same = {"config": {"k": (1, 2)}, "inputs": {"x": "0"}}
    assert is_complete(note, "note", **same)
    assert not is_complete(note, "note", **same | {"config": {"k": (1, 3)}})
    assert not is_complete(note, "note", **same | {"inputs": {"x": "1"}})
    assert not is_complete(note, "model", **same)
    assert not is_complete(note.parent / "other", "note", **same)
    (note / "a.txt").write_text("hell")
    with pytest.raises(PreplayError, match="4 bytes instead of 5"):
        is_complete(note, "note", **same)


KILL = """
import os, signal, sys
import preplay.artifacts as artifacts
real = os.rename
def kill(source, target):
    count.append(1)
    if len(count) == int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)
    real(source, target)
count = []
artifacts.os.rename = kill
with artifacts.write_artifact(sys.argv[1], "note") as staging:
    (staging.path / "a.txt").write_text("second")
"""


def killed_at_rename(uri: Path, number: int) -> None:
    done = subprocess.run([sys.executable, "-c", KILL, str(uri), str(number)], check=False)
    assert done.returncode == -signal.SIGKILL


def test_kill_between_stage_and_rename_leaves_nothing_to_read(tmp_path):
    killed_at_rename(tmp_path / "note", 1)
    with pytest.raises(PreplayError, match="no finished artifact"):
        open_artifact(tmp_path / "note", "note")
    write(tmp_path / "note")
    assert open_artifact(tmp_path / "note", "note").file("a.txt").read_text() == "hello"


def test_kill_before_a_replacement_keeps_the_old(note):
    killed_at_rename(note, 1)
    assert open_artifact(note, "note").file("a.txt").read_text() == "hello"


def test_kill_in_the_middle_of_a_replacement_is_seen(note):
    """Between the two renames neither stands at the path: a clear error, and a new run repairs it."""
    killed_at_rename(note, 2)
    with pytest.raises(PreplayError, match="no finished artifact"):
        open_artifact(note, "note")
    write(note, "third")
    assert open_artifact(note, "note").file("a.txt").read_text() == "third"


def test_atomic_write_replaces_or_leaves(tmp_path, monkeypatch):
    atomic_write(tmp_path / "f", b"one")

    def full(*args):
        raise OSError("disk full")

    monkeypatch.setattr("preplay.artifacts.os.fsync", full)
    with pytest.raises(OSError, match="disk full"):
        atomic_write(tmp_path / "f", b"two")
    assert (tmp_path / "f").read_bytes() == b"one"
    assert os.listdir(tmp_path) == ["f"]


def test_remote_round_trip_and_replacement():
    uri = "memory://artifacts/remote-note"
    write(uri)
    assert open_artifact(uri, "note").file("deep/b.txt").read_text() == "b"
    with write_artifact(uri, "note") as staging:
        (staging.path / "new.txt").write_text("new")
    assert set(open_artifact(uri, "note").manifest.files) == {"new.txt"}
    assert not fsspec.filesystem("memory").exists("/artifacts/remote-note/a.txt")


def test_remote_without_manifest_is_not_there():
    fsspec.filesystem("memory").pipe_file("/artifacts/half/a.txt", b"hello")
    with pytest.raises(PreplayError, match="no finished artifact"):
        open_artifact("memory://artifacts/half", "note")


def test_remote_damage_is_seen():
    uri = "memory://artifacts/damaged-note"
    write(uri, text="damaged later")
    fsspec.filesystem("memory").pipe_file("/artifacts/damaged-note/a.txt", b"damag")
    with pytest.raises(
        PreplayError, match=r"^memory://artifacts/damaged-note/a\.txt: .*5 bytes instead of 13"
    ):
        open_artifact(uri, "note")
    fsspec.filesystem("memory").rm("/artifacts/damaged-note/a.txt")
    with pytest.raises(PreplayError, match="listed in the manifest but missing"):
        open_artifact(uri, "note")
    fsspec.filesystem("memory").pipe_file("/artifacts/damaged-note/manifest.json", b"{")
    with pytest.raises(PreplayError, match="the manifest is damaged"):
        open_artifact(uri, "note")


def test_a_damaged_local_copy_is_fetched_again(monkeypatch, tmp_path):
    """A damaged local copy must not hide an intact original for ever."""
    monkeypatch.setattr("preplay.artifacts.tempfile.gettempdir", lambda: str(tmp_path))
    uri = "memory://artifacts/cached-note"
    write(uri)
    local = open_artifact(uri, "note").path
    assert json.loads((local / "manifest.json").read_text())["kind"] == "note"
    (local / "a.txt").write_text("hell")
    assert open_artifact(uri, "note").file("a.txt").read_text() == "hello"
