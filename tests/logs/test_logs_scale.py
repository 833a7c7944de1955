"""Ingest in segments and parts: the same dataset however the work is cut, and only what is new is read."""

import gzip
import json
from hashlib import blake2b, sha256
from pathlib import Path

import fsspec
import pyarrow.parquet as pq
import pytest
from logs_helpers import column, row, write_jsonl

import preplay.logs._pipeline as pipeline
import preplay.logs._segments as segments
from preplay.logs import ingest, load_card, load_quarantine, load_turns, read_logs
from preplay.logs._spill import hash_id

RECORDS = [
    row(
        f"s{i % 40}",
        i // 40,
        last=i >= 80,
        action_prob=0.5,
        reward="bad" if i == 47 else float(i % 3),
        note="x" * (i % 30),
    )
    for i in range(120)
]


@pytest.fixture
def small(monkeypatch):
    """Segments of 2 kB and parts of 4 kB, so that a few lines are cut like gigabytes."""
    monkeypatch.setattr(segments, "SEGMENT_BYTES", 2048)
    monkeypatch.setattr(pipeline, "PART_BYTES", 4096)


def dataset(path):
    return load_turns(path), {(q.source, q.field, q.reason) for q in load_quarantine(path)}


def test_cutting_changes_nothing(tmp_path, small):
    log = write_jsonl(tmp_path / "log.jsonl", RECORDS)
    artifact = ingest([log], str(tmp_path / "cut"), parallel=False)
    names = [name for name in artifact.manifest.files if name.startswith("turns")]
    assert len(names) > 4
    turns, lost = dataset(tmp_path / "cut")
    whole = read_logs([log])
    assert turns.equals(whole.turns)
    assert lost == {(q.source, q.field, q.reason) for q in whole.quarantined}
    card = load_card(tmp_path / "cut")
    assert card.records == whole.records == {"read": 118, "quarantined": 2, "merged": 0}


def test_sessions_in_the_order_of_the_log_with_blank_lines_and_windows_ends(tmp_path, small):
    """Sessions that stand together are not sorted by their ids on the way; whoever reads them sorts them."""
    records = [row(f"s{i:02d}", turn, last=turn == 2) for i in reversed(range(40)) for turn in range(3)]
    log = tmp_path / "log.jsonl"
    log.write_bytes(b"\r\n \r\n".join(json.dumps(r).encode() for r in records))
    artifact = ingest([log], str(tmp_path / "cut"), parallel=False)
    names = sorted(name for name in artifact.manifest.files if name.startswith("turns"))
    assert len(names) > 4
    assert pq.read_table(artifact.file(names[0]))["session_id"][0].as_py() == "s39"
    turns = load_turns(tmp_path / "cut")
    assert turns.equals(read_logs([log]).turns)
    assert turns["session_id"].to_pylist() == [f"s{i:02d}" for i in range(40) for _ in range(3)]
    assert sorted(int(s.rsplit(":", 1)[1]) for s in turns["source"].to_pylist()) == list(range(1, 240, 2))


def test_ray_gives_the_same_bytes(tmp_path, small, ray2):
    """Workers run in other processes, so the sizes are those of the segments cut here."""
    log = write_jsonl(tmp_path / "log.jsonl", RECORDS)
    alone = ingest([log], str(tmp_path / "alone"), parallel=False).manifest
    many = ingest([log], str(tmp_path / "many"), parallel=True).manifest
    assert many.content_hash == alone.content_hash


def test_appended_files_are_read_from_where_they_ended(tmp_path, small, monkeypatch):
    log = tmp_path / "log.jsonl"
    write_jsonl(log, RECORDS[:70])
    cache = str(tmp_path / "cache")
    ingest([str(log)], str(tmp_path / "data"), cache=cache, parallel=False)
    with log.open("a") as stream:
        stream.writelines(json.dumps(r) + "\n" for r in RECORDS[70:])
    read = []
    spill = pipeline.spill

    def spying(segment, folder):
        if not (folder / segment.key / "summary.json").exists():
            read.append((segment.start, segment.end))
        return spill(segment, folder)

    monkeypatch.setattr(pipeline, "spill", spying)
    again = ingest([str(log)], str(tmp_path / "data"), cache=cache, parallel=False)
    assert min(start for start, _ in read) == sum(len(json.dumps(r)) + 1 for r in RECORDS[:70])
    once = ingest([str(log)], str(tmp_path / "once"), parallel=False)
    assert again.manifest.content_hash == once.manifest.content_hash


def test_a_half_written_last_line_is_read_again_when_it_is_whole(tmp_path, small):
    log = tmp_path / "log.jsonl"
    text = "".join(json.dumps(r) + "\n" for r in RECORDS[:5])
    log.write_text(text[:-20])
    cache = str(tmp_path / "cache")
    ingest([str(log)], str(tmp_path / "data"), cache=cache)
    assert len(load_quarantine(tmp_path / "data")) == 1
    log.write_text(text)
    ingest([str(log)], str(tmp_path / "data"), cache=cache)
    assert load_quarantine(tmp_path / "data") == []
    assert load_turns(tmp_path / "data").num_rows == 5


def test_changed_content_is_never_taken_from_the_cache(tmp_path, small):
    log = tmp_path / "log.jsonl"
    cache = str(tmp_path / "cache")
    for action in ("first", "other"):
        write_jsonl(log, [row(action=action, last=True)])
        ingest([str(log)], str(tmp_path / "data"), cache=cache)
        assert load_turns(tmp_path / "data")["action"].to_pylist() == [action]


def test_the_manifest_names_each_file_by_its_sha256(tmp_path, small):
    """Whether a file was cut into many segments, is one, or is compressed."""
    large = write_jsonl(tmp_path / "large.jsonl", RECORDS)
    one = write_jsonl(tmp_path / "one.jsonl", [row("alone", 0, last=True)])
    packed = tmp_path / "packed.jsonl.gz"
    packed.write_bytes(gzip.compress(json.dumps(row("packed", 0, last=True)).encode()))
    files = [str(large), str(one), str(packed)]
    inputs = ingest(files, str(tmp_path / "data"), parallel=False).manifest.inputs
    assert inputs == {f: sha256(Path(f).read_bytes()).hexdigest() for f in files}


def test_globs_folders_and_uris(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        data = json.dumps(row(name, last=True)) + "\n"
        (tmp_path / name / "log.jsonl.gz").write_bytes(gzip.compress(data.encode()))
    assert column(read_logs([str(tmp_path)]), "session_id") == ["a", "b"]
    assert column(read_logs([f"{tmp_path}/*/log.jsonl.gz"]), "session_id") == ["a", "b"]
    with fsspec.open("memory://logs/c.jsonl", "wb") as stream:
        stream.write((json.dumps(row("c", last=True)) + "\n").encode())
    result = read_logs(["memory://logs/c.jsonl"])
    assert column(result, "source") == ["memory://logs/c.jsonl:1"]
    ingest(["memory://logs/c.jsonl"], str(tmp_path / "data"))
    assert load_turns(tmp_path / "data")["session_id"].to_pylist() == ["c"]


def test_a_failed_ingest_leaves_the_earlier_dataset(tmp_path):
    log = write_jsonl(tmp_path / "log.jsonl", [row(last=True)])
    before = ingest([log], str(tmp_path / "data")).manifest
    write_jsonl(tmp_path / "log.jsonl", [row(reward="?")])
    with pytest.raises(Exception, match="no usable turn"):
        ingest([log], str(tmp_path / "data"))
    assert load_turns(tmp_path / "data").num_rows == before.metrics["turns"]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["data", "log.jsonl"]


def test_hashes_depend_on_the_id_alone():
    assert hash_id("a") == 0x2F42665B399EF840
    assert hash_id("ü") == int.from_bytes(blake2b(b"\xc3\xbc", digest_size=8).digest(), "little")


GROUPED = [row(f"s{i // 3}", i % 3, last=i % 3 == 2, note="x" * (i % 30)) for i in range(120)]


@pytest.mark.parametrize("size", [700, 1 << 20])
def test_parts_do_not_depend_on_segments(tmp_path, small, monkeypatch, size):
    """Whole sessions stay where they stand in the log; one that comes back later is put together again."""
    records = [*GROUPED, row("s2", 3, last=True), row("s30", 3, last=True)]
    records[8]["terminated"] = records[92]["terminated"] = False
    log = write_jsonl(tmp_path / "log.jsonl", records)
    once = ingest([log], str(tmp_path / "once"), parallel=False)
    monkeypatch.setattr(segments, "SEGMENT_BYTES", size)
    other = ingest([log], str(tmp_path / "other"), parallel=False)
    assert other.manifest.content_hash == once.manifest.content_hash
    files = sorted(name for name in once.manifest.files if name.startswith("turns"))
    ids = [pq.read_table(once.file(name))["session_id"].unique().to_pylist() for name in files]
    assert ids[0] == ["s0", "s1", *sorted(ids[0][2:])]
    assert ids[-1] == ["s2", "s30"]
    assert load_turns(tmp_path / "once").equals(read_logs([log]).turns)
