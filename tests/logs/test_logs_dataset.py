"""The dataset artifact and its data card; figures by hand."""

import io
import json
import math

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from logs_helpers import read, row, write_jsonl
from rich.console import Console

from preplay.artifacts import open_artifact, write_artifact
from preplay.errors import PreplayError
from preplay.logs import (
    TURN_SCHEMA,
    data_card,
    export_jsonl,
    ingest,
    load_card,
    load_quarantine,
    load_turns,
    read_logs,
    render_card,
)


def sessions():
    """Two policies: a earns 0 + 1 = 1 in two turns, b earns 4 in one."""
    a = [row("a", 0, policy="p", action_prob=0.5), row("a", 1, policy="p", action_prob=0.25, last=True)]
    return [*a, row("b", 0, policy="q", reward=4, truncated=True)]


def test_ingest_writes_turns_quarantine_and_card(tmp_path):
    log = write_jsonl(tmp_path / "log.jsonl", [*sessions(), row("bad", reward="?")])
    artifact = ingest([log], str(tmp_path / "data"))
    assert artifact.manifest.metrics == {"sessions": 2, "turns": 3, "quarantined": 1}
    turns = load_turns(tmp_path / "data")
    assert turns.equals(read_logs([log]).turns)
    assert turns.schema.equals(TURN_SCHEMA)
    [lost] = load_quarantine(tmp_path / "data")
    assert (lost.source, lost.field, lost.reason) == (f"{log}:4", "reward", "'?' is not a number")
    [line] = (tmp_path / "data" / "quarantine.jsonl").read_text().splitlines()
    assert json.loads(line)["source"] == f"{log}:4"


def test_the_same_logs_give_the_same_content_hash(tmp_path):
    log = write_jsonl(tmp_path / "log.jsonl", sessions())
    hashes = {ingest([log], str(tmp_path / name)).manifest.content_hash for name in "ab"}
    assert len(hashes) == 1


def test_card_figures(tmp_path):
    result = read(tmp_path, sessions())
    card = data_card(result.turns, 2, records={"read": 3, "quarantined": 2}, formats=result.formats)
    assert (card.sessions, card.turns, card.terminated, card.truncated) == (2, 3, 1, 1)
    assert [(p.policy, p.sessions, p.turns, p.mean_return) for p in card.policies] == [
        ("p", 1, 2, 1.0),
        ("q", 1, 1, 4.0),
    ]
    assert card.turns_per_session.model_dump() == {"min": 1, "mean": 1.5, "median": 1.5, "max": 2}
    assert card.rewards.mean == pytest.approx(5 / 3)
    assert card.returns.model_dump() == {"min": 1, "mean": 2.5, "median": 2.5, "max": 4}
    assert card.nonzero_rewards == pytest.approx(2 / 3)
    p = card.propensities
    assert (p.present, p.smallest, p.largest, p.one_value) == (pytest.approx(2 / 3), 0.25, 0.5, False)
    assert card.text_lengths["action"].max == len("action 0")
    assert card.formats == {"turns-jsonl": 1}
    assert "Only 67% of the turns have a propensity." in card.warnings
    assert "40% of the input records are in quarantine." in card.warnings
    assert "50% of the sessions are cut, not ended." in card.warnings


def test_card_warns_of_a_constant_propensity_equal_sessions_and_zero_rewards(tmp_path):
    records = [row(name, 0, action_prob=0.1, reward=0, last=True) for name in "abc"]
    card = data_card(read(tmp_path, records).turns)
    assert card.duplicate_sessions == 2
    assert card.propensities.one_value
    text = " ".join(card.warnings)
    for part in (
        "All rewards are 0",
        "Every propensity is 0.1: a constant",
        "2 sessions are equal",
        "one turn",
    ):
        assert part in text


def test_card_is_rendered(tmp_path):
    log = write_jsonl(tmp_path / "log.jsonl", sessions())
    ingest([log], str(tmp_path / "data"))
    console = Console(width=100, record=True, file=io.StringIO())
    console.print(render_card(load_card(tmp_path / "data")))
    text = console.export_text()
    assert "67% of turns, 0.25 to 0.5" in text
    assert "4.0000" in text


def test_canonical_round_trip(tmp_path):
    records = [
        r | {"timestamp": 1714557600 + i, "note": {"n": i}, "task": "t"} for i, r in enumerate(sessions())
    ]
    turns = read(tmp_path, records).turns
    export_jsonl(turns, tmp_path / "canonical.jsonl")
    assert read_logs([str(tmp_path / "canonical.jsonl")]).turns.equals(turns)
    pq.write_table(turns, tmp_path / "canonical.parquet")
    assert read_logs([str(tmp_path / "canonical.parquet")]).turns.equals(turns)


def test_a_dataset_of_another_schema_version_is_refused(tmp_path):
    with write_artifact(tmp_path / "old", "dataset") as staging:
        table = read(tmp_path, sessions()).turns.replace_schema_metadata({"preplay.schema_version": "0"})
        pq.write_table(table, staging.path / "turns.parquet")
    with pytest.raises(PreplayError, match="schema version 0, this preplay reads 1"):
        load_turns(tmp_path / "old")


def test_a_dataset_with_other_fields_is_refused(tmp_path):
    with write_artifact(tmp_path / "odd", "dataset") as staging:
        schema = pa.schema([("session_id", pa.string())], metadata=TURN_SCHEMA.metadata)
        pq.write_table(pa.table({"session_id": ["a"]}, schema=schema), staging.path / "turns.parquet")
    with pytest.raises(PreplayError, match="do not have the fields of the Turn schema"):
        load_turns(tmp_path / "odd")


def test_a_damaged_dataset_is_never_read_as_good(tmp_path):
    ingest([write_jsonl(tmp_path / "log.jsonl", sessions())], str(tmp_path / "data"))
    file = tmp_path / "data" / "turns.parquet"
    file.write_bytes(file.read_bytes()[:-10])
    with pytest.raises(PreplayError, match=r"bytes instead of"):
        load_turns(tmp_path / "data")
    (tmp_path / "data" / "manifest.json").unlink()
    with pytest.raises(PreplayError, match="no finished artifact"):
        load_turns(tmp_path / "data")


def test_memory_uris(tmp_path):
    log = write_jsonl(tmp_path / "log.jsonl", sessions())
    ingest([log], "memory://bucket/data")
    assert open_artifact("memory://bucket/data", "dataset").manifest.metrics["turns"] == 3
    assert math.isclose(sum(load_turns("memory://bucket/data")["reward"].to_pylist()), 5.0)
