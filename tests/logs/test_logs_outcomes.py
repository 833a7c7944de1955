"""Outcomes joined by key, late, partial and contradictory; checks; redaction."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from logs_helpers import read, row, write_jsonl

from preplay.errors import PreplayError
from preplay.logs import ingest, join_outcomes, load_card, load_quarantine, load_turns, read_outcomes


def open_sessions(tmp_path, names="abc", **more):
    """Two turns each without a reward."""
    records = [row(name, t, reward=None, last=t == 1, **more) for name in names for t in range(2)]
    return read(tmp_path, records).turns


def joined(turns, tmp_path, records, key="session_id"):
    return join_outcomes(turns, read_outcomes(write_jsonl(tmp_path / "outcomes.jsonl", records), key))


def test_an_outcome_is_the_last_turns_reward(tmp_path):
    result = joined(
        open_sessions(tmp_path),
        tmp_path,
        [{"session_id": "b", "success": True}, {"session_id": "x", "reward": 1}],
    )
    assert result.turns["reward"].to_pylist() == [0, 0, 0, 1, 0, 0]
    assert (result.sessions, result.used, result.conflicts) == (1, {"b"}, [])


def test_outcomes_per_turn_and_for_the_session(tmp_path):
    rows = [{"session_id": "a", "turn": 0, "reward": 0.25}, {"session_id": "a", "turn": 1, "reward": "0.5"}]
    result = joined(open_sessions(tmp_path), tmp_path, rows)
    assert result.turns["reward"].to_pylist() == [0.25, 0.5, 0, 0, 0, 0]


def test_conflicting_outcomes_are_reported_and_not_used(tmp_path):
    rows = [{"session_id": "a", "reward": r} for r in (1, 0, 1)] + [{"session_id": "b", "reward": 1}]
    result = joined(open_sessions(tmp_path), tmp_path, rows)
    assert result.turns["reward"].to_pylist() == [0, 0, 0, 1, 0, 0]
    assert [(q.source.rsplit(":", 1)[1], q.reason) for q in result.conflicts] == [
        ("1", "conflicting outcomes of 'a': 0, 1"),
        ("2", "conflicting outcomes of 'a': 0, 1"),
    ]


def test_an_outcome_against_a_logged_reward_is_a_conflict(tmp_path):
    turns = read(tmp_path, [row("a", 0, reward=2.0, last=True), row("b", 0, reward=1.0, last=True)]).turns
    result = joined(turns, tmp_path, [{"session_id": "a", "reward": 1}, {"session_id": "b", "reward": 1}])
    assert result.turns["reward"].to_pylist() == [2, 1]
    assert [q.reason for q in result.conflicts] == ["another reward (2) is logged at turn 0"]


def test_a_session_cut_at_a_gap_keeps_no_outcome(tmp_path):
    turns = read(tmp_path, [row("a", 0, reward=0), row("a", 2, reward=0, last=True)]).turns
    result = joined(turns, tmp_path, [{"session_id": "a", "reward": 1}])
    assert result.turns["reward"].to_pylist() == [0]
    assert [q.reason for q in result.conflicts] == ["the session is cut before its end"]


def test_the_key_may_be_a_field_of_extras(tmp_path):
    turns = open_sessions(tmp_path, "ab", ticket=77)
    result = joined(turns, tmp_path, [{"ticket": "77", "outcome": 3}], key="ticket")
    assert result.turns["reward"].to_pylist() == [0, 3, 0, 3]


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_tables_of_outcomes(tmp_path, suffix):
    path = tmp_path / f"o.{suffix}"
    if suffix == "csv":
        path.write_text("session_id,reward\na,1\nb,\n,2\nc,x\n")
    else:
        pq.write_table(pa.table({"session_id": ["a", "b", None, "c"], "reward": ["1", None, "2", "x"]}), path)
    outcomes = read_outcomes(str(path))
    assert {k: list(v) for k, v in outcomes.by_session.items()} == {"a": [1.0]}
    assert [(q.field, q.reason) for q in outcomes.refused] == [
        ("reward", "missing"),
        ("session_id", "missing"),
        ("reward", "'x' is not a number"),
    ]


def test_no_usable_outcome_is_an_error(tmp_path):
    with pytest.raises(PreplayError, match=r"no usable outcome \(session_id: missing\)"):
        read_outcomes(write_jsonl(tmp_path / "o.jsonl", [{"id": 1, "reward": 2}]))


def test_ingest_with_outcomes(tmp_path):
    log = write_jsonl(tmp_path / "log.jsonl", [row(n, 0, reward=None, last=True) for n in "abc"])
    outcomes = write_jsonl(
        tmp_path / "o.jsonl", [{"session_id": n, "reward": 1} for n in "axx"] + [{"session_id": "b"}]
    )
    ingest([log], str(tmp_path / "data"), outcomes=outcomes)
    assert load_turns(tmp_path / "data")["reward"].to_pylist() == [1, 0, 0]
    warnings = load_card(tmp_path / "data").warnings
    assert "1 of 2 outcomes match no session." in warnings
    assert "2 sessions have no reward (0 was put in): join the outcomes (--outcomes FILE)." in warnings
    assert [(q.field, q.reason) for q in load_quarantine(tmp_path / "data")] == [("reward", "missing")]


SECRETS = {
    "mail ann.lee@shop.example.com now": "mail [email] now",
    "key AKIAABCDEFGHIJKLMNOP.": "key [aws_key].",
    "sk-proj-abcdefghijklmnop1234": "[api_key]",
    "Authorization: Bearer abcdefghijklmnopqrstuvwx": "Authorization: [bearer]",
    "ghp_" + "a1" * 18: "[github_token]",
    "xoxb-1234567890-abc": "[slack_token]",
    "eyJhbGciOiJI.eyJzdWIiOiIxMjM0.c2lnbmF0dXJl": "eyJhbGciOiJI.eyJzdWIiOiIxMjM0.c2lnbmF0dXJl",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.c2lnbmF0dXJl": "[jwt]",
    "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----": "[private_key]",
    "meet @ 5, task-based, sk-short": "meet @ 5, task-based, sk-short",
}


def test_secrets_are_counted_and_masked(tmp_path):
    records = [row(f"s{i:02}", 0, state=text, next_state="ok", last=True) for i, text in enumerate(SECRETS)]
    log = write_jsonl(tmp_path / "log.jsonl", [*records, row("bad", reward="ann@example.org")])
    ingest([log], str(tmp_path / "plain"))
    ingest([log], str(tmp_path / "masked"), redact=True)
    checks = load_card(tmp_path / "plain").checks
    kinds = ("email", "aws_key", "api_key", "bearer", "github_token", "slack_token", "jwt", "private_key")
    assert [checks[f"secret_{kind}"] for kind in kinds] == [1] * 8
    assert load_turns(tmp_path / "plain")["observation"].to_pylist() == list(SECRETS)
    assert load_turns(tmp_path / "masked")["observation"].to_pylist() == list(SECRETS.values())
    assert "ann@example.org" not in (tmp_path / "masked" / "quarantine.jsonl").read_text()


def test_checks_of_texts_and_of_the_next_observation(tmp_path):
    states = ["You have 4 steps left and 2 chances.", "long output ...[truncated]", "fine", "Step 3 of 10"]
    records = [row("s", t, state=states[t], next_state=states[t + 1], last=t == 2) for t in range(3)]
    records[1]["next_state"] = "something else"
    log = write_jsonl(tmp_path / "log.jsonl", records)
    ingest([log], str(tmp_path / "data"))
    checks = load_card(tmp_path / "data").checks
    assert checks["harness_text"] == 1
    assert checks["cut_texts"] == 1
    assert checks["next_observation_differs"] == 1


@pytest.mark.parametrize("end", ["[500 characters omitted]", "OUTPUT TRUNCATED", "... (truncated)"])
def test_texts_that_an_exporter_cut(tmp_path, end):
    log = write_jsonl(tmp_path / "log.jsonl", [row("s", 0, state=f"a long output {end}", last=True)])
    ingest([log], str(tmp_path / "data"))
    assert load_card(tmp_path / "data").checks["cut_texts"] == 1


def test_a_success_that_ends_the_session_leaks_into_its_length(tmp_path):
    def session(name, length, won):
        return [
            row(name, t, reward=float(won and t == length - 1), last=t == length - 1) for t in range(length)
        ]

    records = [r for i in range(12) for r in session(f"w{i}", 2, True) + session(f"l{i}", 5, False)]
    log = write_jsonl(tmp_path / "log.jsonl", records)
    ingest([log], str(tmp_path / "data"))
    card = load_card(tmp_path / "data")
    assert card.success_ends_session == 1.0
    assert any("length gives the outcome away" in w for w in card.warnings)
    assert json.loads((tmp_path / "data" / "card.json").read_text())["sessions"] == 24
