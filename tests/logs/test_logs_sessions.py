"""How steps become turns: order, gaps, ends, copies, histories. Each rule with the values it must give."""

import pytest
from logs_helpers import column, read, reasons, row, write_jsonl

from preplay.errors import PreplayError
from preplay.logs import read_logs


def test_a_session_is_aligned(tmp_path):
    result = read(tmp_path, [row(turn=0), row(turn=1, last=True)])
    assert column(result, "observation") == ["state 0", "state 1"]
    assert column(result, "next_observation") == ["state 1", "state 2"]
    assert column(result, "reward") == [0.0, 1.0]
    assert column(result, "terminated") == [False, True]
    assert column(result, "truncated") == [False, False]
    assert [s.rsplit(":", 1)[1] for s in column(result, "source")] == ["1", "2"]
    assert result.records == {"read": 2, "quarantined": 0, "merged": 0}
    assert result.quarantined == []


def test_unsorted_turns_are_sorted_and_may_start_at_one(tmp_path):
    result = read(tmp_path, [row(turn=2, last=True), row(turn=1), row("r", 0, last=True)])
    assert list(zip(column(result, "session_id"), column(result, "turn"), strict=True)) == [
        ("r", 0),
        ("s", 0),
        ("s", 1),
    ]
    assert column(result, "action") == ["action 0", "action 1", "action 2"]
    assert result.notes["unsorted_sessions"] == 1


def test_a_gap_cuts_the_session_and_is_never_bridged(tmp_path):
    result = read(tmp_path, [row(turn=0), row(turn=1), row(turn=3), row(turn=4, last=True)])
    assert column(result, "action") == ["action 0", "action 1"]
    assert column(result, "truncated") == [False, True]
    assert column(result, "terminated") == [False, False]
    assert reasons(result) == [
        ("3", "turn_id", "turn 2 is missing"),
        ("4", "turn_id", "follows a gap in its session: turn 2 is missing"),
    ]


def test_a_bad_turn_in_the_middle_cuts_the_session_there(tmp_path):
    result = read(tmp_path, [row(turn=0), row(turn=1, reward="lots"), row(turn=2, last=True), row("t", 0)])
    assert list(zip(column(result, "session_id"), column(result, "action"), strict=True)) == [
        ("s", "action 0"),
        ("t", "action 0"),
    ]
    assert column(result, "truncated")[0] is True
    assert [r[:2] for r in reasons(result)] == [("2", "reward"), ("3", "turn_id")]
    assert result.records == {"read": 2, "quarantined": 2, "merged": 0}


def test_a_bad_last_turn_leaves_a_truncated_session(tmp_path):
    """Without the bad turn the session would look complete; it must not count as terminated."""
    records = [
        row(turn=0, terminated=..., truncated=...),
        row(turn=1, action=None, terminated=..., truncated=...),
    ]
    result = read(tmp_path, records)
    assert column(result, "truncated") == [True]
    assert column(result, "terminated") == [False]
    assert reasons(result) == [("2", "action", "missing")]


def test_a_session_whose_beginning_is_missing_is_refused(tmp_path):
    result = read(tmp_path, [row(turn=5), row("t", 0, last=True)])
    assert column(result, "session_id") == ["t"]
    assert reasons(result) == [("1", "turn_id", "the turns before 5 are missing")]


def test_equal_copies_are_merged(tmp_path):
    result = read(tmp_path, [row(turn=0), row(turn=0), row(turn=1, last=True)])
    assert column(result, "action") == ["action 0", "action 1"]
    assert result.notes["duplicate_turns"] == 1
    assert result.records == {"read": 2, "quarantined": 0, "merged": 1}


def test_a_repeated_turn_number_with_other_content_is_refused(tmp_path):
    result = read(tmp_path, [row(turn=0), row(turn=0, action="other"), row(turn=1, last=True)])
    assert column(result, "action") == ["action 0", "action 1"]
    [(line, field, reason)] = reasons(result)
    assert (line, field) == ("2", "turn_id")
    assert reason.startswith("turn 0 stands already in")
    assert reason.endswith("log.jsonl:1 with other content")


def test_the_same_file_twice_gives_the_same_turns(tmp_path):
    a = write_jsonl(tmp_path / "a.jsonl", [row(turn=0), row(turn=1, last=True)])
    b = write_jsonl(tmp_path / "b.jsonl", [row(turn=0), row(turn=1, last=True)])
    result = read_logs([a, b])
    assert column(result, "action") == ["action 0", "action 1"]
    assert result.records == {"read": 2, "quarantined": 0, "merged": 2}


def test_copied_files_without_turn_numbers_are_merged_too(tmp_path):
    records = [row(turn=0, turn_id=...), row(turn=1, turn_id=..., last=True)]
    paths = [write_jsonl(tmp_path / f"{name}.jsonl", records) for name in "ab"]
    result = read_logs(paths)
    assert column(result, "turn") == [0, 1]
    assert result.records["merged"] == 2


def test_one_id_in_two_files_for_different_sessions_is_told_apart(tmp_path):
    a = write_jsonl(tmp_path / "a.jsonl", [row(turn=0, last=True)])
    b = write_jsonl(tmp_path / "b.jsonl", [row(turn=0, action="other", last=True)])
    result = read_logs([a, b])
    assert column(result, "session_id") == [f"s@{a}", f"s@{b}"]
    assert result.notes["split_by_file"] == 1


def test_one_id_used_by_two_policies_is_told_apart(tmp_path):
    result = read(tmp_path, [row(policy="p", last=True), row(policy="q", action="other", last=True)])
    assert column(result, "session_id") == ["s@p", "s@q"]
    assert column(result, "policy") == ["p", "q"]


def test_a_session_may_be_spread_over_files(tmp_path):
    a = write_jsonl(tmp_path / "a.jsonl", [row(turn=0)])
    b = write_jsonl(tmp_path / "b.jsonl", [row(turn=1, last=True)])
    assert column(read_logs([b, a]), "action") == ["action 0", "action 1"]


def test_missing_turn_numbers_mean_order_of_time_then_arrival(tmp_path):
    times = ["2024-05-01T10:00:02Z", "2024-05-01T10:00:01+00:00", "2024-05-01T12:00:00+02:00"]
    records = [
        row(turn=i, turn_id=..., timestamp=t, terminated=..., truncated=...) for i, t in enumerate(times)
    ]
    assert column(read(tmp_path, records), "action") == ["action 2", "action 1", "action 0"]
    for record in records:
        del record["timestamp"]
    assert column(read(tmp_path, records), "action") == ["action 0", "action 1", "action 2"]


def test_a_turn_without_number_among_numbered_ones_is_refused_and_marks_the_session(tmp_path):
    result = read(tmp_path, [row(turn=0), row(turn=1, turn_id=None, last=True)])
    assert column(result, "truncated") == [True]
    assert reasons(result) == [("2", "turn_id", "missing, but other turns of the session have one")]


@pytest.mark.parametrize(
    ("flags", "terminated", "truncated", "note"),
    [
        ({"terminated": ..., "truncated": ...}, True, False, "end_assumed"),
        ({"terminated": False, "truncated": False}, False, True, "open_end"),
        ({"terminated": True, "truncated": True}, True, False, "both_flags"),
        ({"terminated": ..., "truncated": True}, False, True, None),
        ({"terminated": "True", "truncated": "0"}, True, False, None),
    ],
)
def test_end_flags(tmp_path, flags, terminated, truncated, note):
    result = read(tmp_path, [row(**flags)])
    assert column(result, "terminated") == [terminated]
    assert column(result, "truncated") == [truncated]
    assert {k for k, v in result.notes.items() if v} == ({note} if note else set())


def test_turns_after_the_end_are_refused(tmp_path):
    result = read(tmp_path, [row(turn=0, terminated=True), row(turn=1)])
    assert column(result, "action") == ["action 0"]
    assert reasons(result)[0][1] == "turn_id"
    assert result.notes["turns_after_end"] == 1


def test_missing_next_state_is_the_following_state(tmp_path):
    result = read(tmp_path, [row(turn=0, next_state=...), row(turn=1, next_state=None, last=True)])
    assert column(result, "next_observation") == ["state 1", ""]
    assert (result.notes["next_state_filled"], result.notes["end_not_logged"]) == (1, 1)


def test_a_cut_last_turn_without_next_state_is_given_up(tmp_path):
    result = read(tmp_path, [row(turn=0), row(turn=1, next_state=None, truncated=True)])
    assert column(result, "action") == ["action 0"]
    assert column(result, "truncated") == [True]
    assert reasons(result) == [("2", "next_state", "missing, and neither a following turn nor an end")]


def test_history_states_give_only_the_new_part(tmp_path):
    states = ["U: hi\n", "U: hi\nA: yo\nU: ok\n", "U: hi\nA: yo\nU: ok\nA: bye\n"]
    records = [row(turn=i, state=states[i], next_state=states[i + 1], last=i == 1) for i in range(2)]
    result = read(tmp_path, records)
    assert column(result, "observation") == ["U: hi\n", "A: yo\nU: ok\n"]
    assert column(result, "next_observation") == ["A: yo\nU: ok\n", "A: bye\n"]
    assert result.notes["sessions_of_whole_histories"] == 1


def test_history_as_lists_of_messages(tmp_path):
    states = [[{"u": 1}], [{"u": 1}, {"a": 2}], [{"u": 1}, {"a": 2}, {"u": 3}]]
    records = [row(turn=i, state=states[i], next_state=states[i + 1], last=i == 1) for i in range(2)]
    result = read(tmp_path, records)
    assert column(result, "observation") == ['[{"u":1}]', '[{"a":2}]']
    assert column(result, "next_observation") == ['[{"a":2}]', '[{"u":3}]']


def test_one_state_that_does_not_grow_means_plain_observations(tmp_path):
    records = [
        row(turn=0, state="door", next_state="door open"),
        row(turn=1, state="door open", next_state="hall"),
    ]
    assert column(read(tmp_path, records), "next_observation") == ["door open", "hall"]


@pytest.mark.parametrize(
    ("rewards", "expected", "note"),
    [
        ([None, None, None], [0.0, 0.0, 0.0], "sessions_without_reward"),
        ([None, None, 1.0], [0.0, 0.0, 1.0], "rewarded_at_end_only"),
        ([1.0, None, 2.0], [1.0], "cut_sessions"),
    ],
)
def test_missing_rewards(tmp_path, rewards, expected, note):
    result = read(tmp_path, [row(turn=i, reward=r, last=i == 2) for i, r in enumerate(rewards)])
    assert column(result, "reward") == expected
    assert result.notes[note] == 1


@pytest.mark.parametrize("field", ["session_id", "note"])
def test_records_of_one_field_are_put_aside_one_by_one(tmp_path, field):
    log = write_jsonl(tmp_path / "log.jsonl", [{field: f"value {i}"} for i in range(50)])
    with pytest.raises(PreplayError, match=r"no usable turn: 50 records"):
        read_logs([log], format="turns-jsonl")


def test_nothing_usable_is_an_error_that_says_why(tmp_path):
    with pytest.raises(
        PreplayError, match=r"no usable turn: 1 records .*1 x reward: 'x' is not a number.*log.jsonl:1"
    ):
        read(tmp_path, [row(reward="x")])
