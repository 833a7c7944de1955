"""Every reader under mutation: never crashes, never invents a turn, accounts for each record exactly once."""

import copy
import json
import math
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from preplay.errors import PreplayError
from preplay.logs import LogFile, Quarantined, RawTurn, read_logs, readers
from preplay.logs._assemble import assemble_steps
from preplay.logs._check import check_turn
from preplay.logs._check_columns import check_block
from preplay.logs._parse import Parsed, read_items
from preplay.logs._records import RawTable
from preplay.logs._sessions import Assembled, assemble

TABLES = ("turns-csv", "balrog-csv")
BINARY = ("turns-parquet", "minari", "rllib-episodes")
JSON = sorted(set(readers()) - set(TABLES) - set(BINARY))
DOCUMENTS = ("intercode", "tau-bench", "tau2", "inspect", "swe-agent")
LINES = [name for name in JSON if name not in DOCUMENTS]
FUZZ = settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.just(2**80),
    st.floats(allow_nan=True),
    st.text(max_size=5),
    st.just("\ud800"),
    st.lists(st.none() | st.integers(0, 2), max_size=2),
    st.dictionaries(
        st.sampled_from(["role", "content", "text", "type", "id", "0"]),
        st.none() | st.text(max_size=3),
        max_size=2,
    ),
)


def places(value, path=()):
    """The path of every value inside a JSON value."""
    yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in inner:
        yield from places(item, (*path, key))


def mutate(record, draw):
    """Drop, replace, repeat or shuffle something somewhere in the record."""
    record = copy.deepcopy(record)
    path = draw(st.sampled_from([p for p in places(record) if p]))
    parent = record
    for key in path[:-1]:
        parent = parent[key]
    kind = draw(st.sampled_from(["drop", "replace", "repeat", "reverse"]))
    if kind == "drop":
        del parent[path[-1]]
    elif kind == "replace":
        parent[path[-1]] = draw(ODD)
    elif kind == "repeat" and isinstance(parent, list):
        parent.append(copy.deepcopy(parent[path[-1]]))
    elif isinstance(parent[path[-1]], list):
        parent[path[-1]].reverse()
    return record


def items(name, text):
    """What a reader makes of a text; the file is gone afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "gpt_run" / "file.traj"
        path.parent.mkdir()
        path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass"))
        found = read_items(readers()[name], LogFile(str(path)))
        return [i for item in found for i in (item.turns() if isinstance(item, RawTable) else [item])]


def check_items(found):
    """Every item names its record, and every raw turn can be checked without an error."""
    assert found, "a record vanished"
    for item in found:
        assert "file.traj" in item.source
        if isinstance(item, RawTurn):
            step, refused = check_turn(item, "f", 0, Parsed().notes)
            assert (step is None) <= (refused is not None)
        elif isinstance(item, Quarantined):
            assert item.field
            assert item.reason


@pytest.mark.parametrize("name", LINES)
@FUZZ
@given(data=st.data())
def test_a_mutated_line_is_read_or_quarantined_and_its_neighbours_are_read(name, data):
    record = json.loads(readers()[name].example)
    mutated = record
    for _ in range(data.draw(st.integers(1, 3))):
        if isinstance(mutated, dict) and mutated:
            mutated = mutate(mutated, data.draw)
    found = items(name, "".join(json.dumps(r) + "\n" for r in (record, mutated, record)))
    check_items(found)
    numbers = [int(i.source.split("file.traj:")[1].split("#")[0].split("/")[0]) for i in found]
    assert sorted(set(numbers)) == [1, 2, 3]
    assert numbers.count(1) == numbers.count(3)
    assert not any(isinstance(i, Quarantined) for i, n in zip(found, numbers, strict=True) if n != 2)


@pytest.mark.parametrize("name", DOCUMENTS)
@FUZZ
@given(data=st.data())
def test_a_mutated_document_is_read_or_quarantined(name, data):
    mutated = json.loads(readers()[name].example)
    for _ in range(data.draw(st.integers(1, 3))):
        if len(list(places(mutated))) > 1:
            mutated = mutate(mutated, data.draw)
    found = items(name, json.dumps(mutated))
    records = {"tau2": "simulations", "inspect": "samples"}.get(name)
    holder = mutated.get(records) if records and isinstance(mutated, dict) else mutated
    if holder or not isinstance(holder, list | dict):
        check_items(found)


@pytest.mark.parametrize("name", [*JSON, *TABLES])
@FUZZ
@given(cut=st.floats(0, 1), junk=st.binary(max_size=8), at=st.floats(0, 1))
def test_cut_and_damaged_files_do_not_crash(name, cut, junk, at):
    text = (readers()[name].example + "\n").encode() * 2
    place = int(at * len(text))
    for damaged in (text[: int(cut * len(text))], text[:place] + junk + text[place:]):
        for item in items(name, damaged):
            assert "file.traj" in item.source


@pytest.mark.parametrize("name", BINARY)
@FUZZ
@given(data=st.binary(max_size=60))
def test_binary_formats_survive_any_bytes(name, data):
    magic = b"\x89HDF\r\n\x1a\n" if name == "minari" else b"PAR1"
    found = items(name, magic + data)
    assert [type(i) for i in found] == [Quarantined]


@settings(max_examples=30, deadline=None, derandomize=True)
@given(junk=st.binary(max_size=200))
def test_any_bytes_are_answered(junk):
    """Detection on junk: a clear error or some turns, never another exception."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "junk"
        path.write_bytes(junk)
        with pytest.raises(PreplayError):
            read_logs([str(path)])


FLAT = st.lists(
    st.tuples(
        st.sampled_from("ab"),
        st.integers(0, 4) | st.none() | st.just("x"),
        st.sampled_from([0.0, 1.0, None, "bad"]),
        st.booleans() | st.none(),
        st.booleans() | st.none(),
        st.sampled_from(["s", "st", "state", None]),
        st.sampled_from(["s", "state", "state more", None]),
    ),
    min_size=1,
    max_size=12,
)


def flat_steps(rows):
    parsed = Parsed()
    names = ("turn", "reward", "terminated", "truncated", "state", "next_state")
    for i, (session, *fields) in enumerate(rows):
        values = dict(zip(names, fields, strict=True)) | {"action": f"action {i}"}
        parsed.check([RawTurn(session, values, f"f:{i}", str(i))], "f", i)
    return parsed


@settings(max_examples=100, deadline=None, derandomize=True)
@given(rows=FLAT)
def test_sessions_account_for_every_record_and_invent_nothing(rows):
    parsed = flat_steps(rows)
    refused = {q.source for q in parsed.quarantined}
    result = assemble_steps(parsed.take_steps())
    turns = result.turns.to_pylist()
    read = [t["source"] for t in turns]
    lost = refused | {q.source for q in result.quarantined}
    assert len(read) == len(set(read))
    assert not set(read) & lost
    assert sum(result.records.values()) == len(rows)
    assert result.records["read"] == len(read)
    assert result.records["quarantined"] == len(lost)
    sessions = {}
    for turn in turns:
        sessions.setdefault(turn["session_id"], []).append(turn)
    for part in sessions.values():
        assert [t["turn"] for t in part] == list(range(len(part)))
        assert all(not (t["terminated"] or t["truncated"]) for t in part[:-1])
        assert part[-1]["terminated"] != part[-1]["truncated"]


ANY = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 5),
    st.floats(),
    st.sampled_from(["", " ", "x", "007", "1.5", "true", "é", "\ud800", "2024-01-02T03:04:05", "{}"]),
    st.just({"b": 1, "a": [2.5, None]}),
)
TURN = st.fixed_dictionaries(
    {"state": ANY, "action": ANY},
    optional={
        name: ANY
        for name in (
            *(
                "turn",
                "policy",
                "task",
                "next_state",
                "observation",
                "proposed_action",
                "reward",
                "terminated",
            ),
            *(
                "truncated",
                "behavior_logprob",
                "action_prob",
                "tokens",
                "cost",
                "latency_s",
                "timestamp",
                "extras",
            ),
        )
    },
)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(turns=st.lists(TURN, min_size=1, max_size=3), session=ANY, extra=ANY)
def test_a_block_is_checked_as_its_turns_one_by_one(turns, session, extra):
    """The check by columns either gives the steps that the check of single turns gives, or leaves them to it."""
    raws = [RawTurn(session, values, f"f:{i}", str(i), {"more": extra}) for i, values in enumerate(turns)]
    singly = Parsed()
    singly.check(raws, "f", 7)
    table = RawTable.of(raws)
    block = table and check_block(table, "f", 7)
    if block is not None:
        assert not singly.quarantined
        assert not singly.notes
        assert block.equals(singly.take_steps().combine_chunks())


def test_plain_turns_pass_as_a_block():
    values = {
        "turn": 0,
        "state": "Hello é",
        "action": "Hi",
        "reward": 1,
        "next_state": None,
        "action_prob": 0.3,
    }
    raws = [RawTurn("s", dict(values, turn=i), f"f:{i}", str(i), {"tool": "x"}) for i in range(40)]
    table = RawTable.of(raws)
    assert table is not None
    block = check_block(table, "f", 0)
    assert block is not None
    assert block["order"].to_pylist() == list(range(40))
    assert block["behavior_logprob"][0].as_py() == math.log(0.3)
    assert block["extras"][0].as_py() == '{"tool":"x"}'


@settings(max_examples=100, deadline=None, derandomize=True)
@given(rows=FLAT)
def test_whole_columns_and_step_by_step_give_the_same_turns(rows):
    steps = flat_steps(rows).take_steps()
    fast = assemble_steps(steps)
    slow = Assembled()
    for name in sorted(set(steps["session_id"].to_pylist())):
        assemble(name, [s for s in steps.to_pylist() if s["session_id"] == name], slow)
    key = ("session_id", "turn")
    expected = sorted(slow.turns, key=lambda t: tuple(t[k] for k in key))
    assert [{**t, "timestamp": None} for t in fast.turns.to_pylist()] == [
        {name: t[name] for name in fast.turns.column_names} for t in expected
    ]
    assert sorted(fast.quarantined, key=str) == sorted(slow.quarantined, key=str)
    assert +fast.notes == +slow.notes
    assert +fast.records == +slow.records
