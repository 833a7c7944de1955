"""Mutated real records beside whole ones: nothing crashes, nothing is invented, every record has one fate."""

import json
import tempfile
from collections import Counter
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from logs_helpers import shared
from test_logs_fuzz import mutate

from preplay.errors import PreplayError
from preplay.logs import ReadResult, read_logs

MUTATIONS = settings(
    max_examples=20, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True
)
LARGEST = 40_000
"""Characters: longer records would only make this slower."""


@cache
def real_records(name: str) -> list:
    """Up to 12 records of a set of real logs, the shortest first."""
    if name == "mint-alfworld":
        files = sorted(Path(shared(name)).rglob("*.jsonl"))
        records = [json.loads(line) for path in files[:1] for line in path.open()]
    elif name == "swe-agent-traj":
        records = [json.loads(path.read_text()) for path in sorted(Path(shared(name)).rglob("*.traj"))]
    elif name == "intercode-sql":
        path = min(Path(shared(name)).rglob("*.json*"), key=lambda p: p.stat().st_size)
        records = [{key: value} for key, value in json.loads(path.read_text()).items()]
    else:
        path = min(Path(shared(name)).rglob("*.json"), key=lambda p: p.stat().st_size)
        records = json.loads(path.read_text())
    fit = [r for r in records if len(json.dumps(r)) < LARGEST]
    return sorted(fit, key=lambda r: len(json.dumps(r)))[:12]


def read(format: str, suffix: str, text: str) -> ReadResult | None:
    """What is read from a file with this text; None where it says that nothing was usable."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "gpt_run" / f"log{suffix}"
        path.parent.mkdir()
        path.write_text(text, encoding="utf-8", errors="surrogatepass")
        try:
            return read_logs([str(path)], format=format)
        except PreplayError:
            return None


def turns_of(result: ReadResult | None) -> Counter:
    """(observation, action) of every turn read."""
    rows = result.turns.select(["observation", "action"]).to_pylist() if result else []
    return Counter((row["observation"], row["action"]) for row in rows)


def names(record: object) -> str:
    """What tells the sessions of a file apart."""
    if not isinstance(record, dict):
        return "none"
    task = record.get("task")
    task = task.get("task_id") if isinstance(task, dict) else None
    return repr((record.get("task_id"), record.get("trial"), task))


def damaged(data: st.DataObject, record: object) -> object:
    for _ in range(data.draw(st.integers(1, 4))):
        if isinstance(record, dict | list) and record:
            record = mutate(record, data.draw)
    return record


@pytest.mark.parametrize("name", ["mint-alfworld", "tau-bench", "tau-bench-harness-variants"])
@MUTATIONS
@given(data=st.data())
def test_a_damaged_record_leaves_its_neighbours_alone(name, data):
    """Of three records the middle one is damaged: all three have a fate, and the turns of the others are there."""
    chosen = data.draw(st.permutations(range(len(real_records(name)))))[:3]
    first, middle, last = (real_records(name)[i] for i in chosen)
    middle = damaged(data, middle)
    assume(names(middle) not in (names(first), names(last)))  # else they are one session, told twice
    lines = name == "mint-alfworld"
    write = (lambda rs: "\n".join(map(json.dumps, rs))) if lines else json.dumps
    format, suffix = ("mint", ".jsonl") if lines else ("tau-bench", ".json")
    together = read(format, suffix, write([first, middle, last]))
    alone = turns_of(read(format, suffix, write([first]))) + turns_of(read(format, suffix, write([last])))
    assert together is None or sum(together.records.values()) == 3
    assert alone <= turns_of(together)


@pytest.mark.parametrize("name", ["swe-agent-traj", "intercode-sql"])
@MUTATIONS
@given(data=st.data())
def test_a_damaged_document_is_read_or_put_aside(name, data):
    """A file with one session, damaged: read, or put aside with a reason; actions are never made up."""
    records = real_records(name)
    record = damaged(data, records[data.draw(st.integers(0, len(records) - 1))])
    format, suffix = ("swe-agent", ".traj") if name == "swe-agent-traj" else ("intercode", ".json")
    text = json.dumps(record)
    result = read(format, suffix, text)
    if result is not None:
        assert sum(result.records.values()) >= 1
        assert all(q.reason for q in result.quarantined)
        said = [a.split('\n{"tool_calls"')[0] for a in result.turns["action"].to_pylist()]
        prose = [a for a in said if " " in a and a[0] not in "[{"]
        assert [a for a in prose if json.dumps(a)[1:-1] not in text] == []


@pytest.mark.parametrize("name", ["mint-alfworld", "swe-agent-traj", "tau-bench"])
@MUTATIONS
@given(share=st.floats(0, 1))
def test_a_real_file_cut_anywhere_is_answered(name, share):
    records = real_records(name)[:2]
    lines = name == "mint-alfworld"
    text = (
        "\n".join(map(json.dumps, records)) if lines else json.dumps(records if "tau" in name else records[0])
    )
    format = {"mint-alfworld": "mint", "swe-agent-traj": "swe-agent"}.get(name, "tau-bench")
    result = read(format, ".jsonl" if lines else ".json", text[: int(share * len(text))])
    assert result is None or sum(result.records.values()) >= 1
