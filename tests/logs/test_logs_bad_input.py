"""Every kind of broken input has a defined answer."""

import codecs
import gzip
import json

import pytest
import zstandard
from logs_helpers import column, read, reasons, row, write_jsonl

from preplay.errors import PreplayError
from preplay.logs import read_logs

GOOD = [row(turn=0), row(turn=1, last=True)]
TEXT = "".join(json.dumps(r) + "\n" for r in GOOD)


def actions(path):
    return column(read_logs([str(path)]), "action")


def test_empty_file(tmp_path):
    (tmp_path / "empty.jsonl").write_bytes(b"")
    with pytest.raises(PreplayError, match=r"empty.jsonl: the file is empty"):
        read_logs([str(tmp_path / "empty.jsonl")])


def test_an_empty_file_beside_a_good_one_is_a_warning(tmp_path):
    (tmp_path / "empty.jsonl").write_bytes(b"\n\n")
    good = write_jsonl(tmp_path / "good.jsonl", GOOD)
    result = read_logs([str(tmp_path / "empty.jsonl"), good])
    assert column(result, "action") == ["action 0", "action 1"]
    assert result.warnings[0] == f"skipped {tmp_path}/empty.jsonl: the file is empty."


def test_no_such_file(tmp_path):
    with pytest.raises(PreplayError, match="no such file"):
        read_logs([str(tmp_path / "nowhere.jsonl")])


@pytest.mark.parametrize("count", [1, 2])
def test_one_session_and_one_turn(tmp_path, count):
    assert read(tmp_path, GOOD[-count:] if count == 2 else [row(last=True)]).turns.num_rows == count


def test_binary_junk_is_no_known_format_and_the_message_lists_what_was_tried(tmp_path):
    (tmp_path / "junk.bin").write_bytes(bytes(range(256)) * 50)
    with pytest.raises(PreplayError) as error:
        read_logs([str(tmp_path / "junk.bin")])
    message = str(error.value)
    assert "no reader knows this format. Tried:" in message
    for name in (
        "turns-jsonl: not JSON lines (binary)",
        "turns-csv: not a table (binary)",
        "turns-parquet: no Parquet",
    ):
        assert name in message


def test_binary_junk_between_good_lines(tmp_path):
    (tmp_path / "log.jsonl").write_bytes(TEXT.encode() + b"\xff\xfe\x00junk\n")
    result = read_logs([str(tmp_path / "log.jsonl")])
    assert column(result, "action") == ["action 0", "action 1"]
    assert reasons(result) == [("3", "record", "not UTF-8 (byte 0xff at 1)")]


def test_mixed_encodings_are_refused_line_by_line(tmp_path):
    latin = json.dumps(row("é", 0, last=True), ensure_ascii=False).encode("latin-1")
    (tmp_path / "log.jsonl").write_bytes(TEXT.encode() + latin + b"\n")
    result = read_logs([str(tmp_path / "log.jsonl")])
    assert result.turns.num_rows == 2
    assert reasons(result) == [("3", "record", "not UTF-8 (byte 0xe9 at 17)")]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_byte_order_marks(tmp_path, encoding):
    (tmp_path / "log.jsonl").write_bytes(TEXT.encode(encoding))
    assert actions(tmp_path / "log.jsonl") == ["action 0", "action 1"]


def test_bom_and_crlf_in_a_table(tmp_path):
    lines = [
        "session_id,turn_id,state,action,reward,next_state",
        's,0,"a, b",go,0.5,"c\nd"',
        "s,1,c,stop,1,e",
    ]
    (tmp_path / "log.csv").write_bytes(codecs.BOM_UTF8 + "\r\n".join(lines).encode() + b"\r\n")
    result = read_logs([str(tmp_path / "log.csv")])
    assert column(result, "observation") == ["a, b", "c"]
    assert column(result, "next_observation") == ["c\nd", "e"]
    assert column(result, "reward") == [0.5, 1.0]
    assert [s.rsplit(":", 1)[1] for s in column(result, "source")] == ["2", "4"]
    assert "reward_as_text" not in result.notes


def test_crlf_and_blank_lines(tmp_path):
    (tmp_path / "log.jsonl").write_bytes(b"\r\n" + TEXT.replace("\n", "\r\n\r\n").encode())
    result = read_logs([str(tmp_path / "log.jsonl")])
    assert [s.rsplit(":", 1)[1] for s in column(result, "source")] == ["2", "4"]


def test_a_line_of_5_mb(tmp_path):
    text = "x" * 5_000_000
    result = read(tmp_path, [row(turn=0, state=text), row(turn=1, last=True)])
    assert column(result, "observation") == [text, "state 1"]


def test_compressed_files_are_recognised_by_content(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(gzip.compress(TEXT.encode()))
    (tmp_path / "b.jsonl.zst").write_bytes(zstandard.compress(TEXT.encode()))
    assert actions(tmp_path / "a.jsonl") == actions(tmp_path / "b.jsonl.zst") == ["action 0", "action 1"]


def test_a_cut_gzip_file_gives_what_stands_before_the_cut(tmp_path):
    lines = "".join(json.dumps(row(f"s{i}", 0, last=True, note=str(i * 7919))) + "\n" for i in range(3000))
    whole = gzip.compress(lines.encode())
    (tmp_path / "log.jsonl.gz").write_bytes(whole[: len(whole) // 2])
    result = read_logs([str(tmp_path / "log.jsonl.gz")])
    assert 0 < result.turns.num_rows < 3000
    [broken] = [q for q in result.quarantined if q.field == "file"]
    assert broken.reason.startswith("cannot be read after")
    assert result.turns.num_rows + len(result.quarantined) - 1 in (
        result.turns.num_rows,
        result.turns.num_rows + 1,
    )


def test_a_gzip_file_of_which_nothing_is_left(tmp_path):
    (tmp_path / "log.jsonl.gz").write_bytes(gzip.compress(TEXT.encode())[:12])
    with pytest.raises(PreplayError, match=r"cannot be read \(Compressed file ended"):
        read_logs([str(tmp_path / "log.jsonl.gz")])


@pytest.mark.parametrize(
    ("value", "field", "reason"),
    [
        ({"reward": float("nan")}, "reward", "nan is not a finite number"),
        ({"reward": float("inf")}, "reward", "inf is not a finite number"),
        ({"reward": "good"}, "reward", "'good' is not a number"),
        ({"reward": [1]}, "reward", "a list, not a number"),
        ({"behavior_logprob": 0.5}, "behavior_logprob", "0.5 is above 0, no log-probability"),
        ({"action_prob": 0}, "action_prob", "0.0 is not a probability above 0"),
        ({"action_prob": 1.5}, "action_prob", "1.5 is not a probability above 0"),
        ({"state": ...}, "state", "missing"),
        ({"session_id": None}, "session_id", "missing"),
        ({"session_id": " "}, "session_id", "empty"),
        ({"session_id": 1.5}, "session_id", "a float, not text"),
        ({"turn_id": -1}, "turn_id", "-1 is not a whole number from 0 up"),
        ({"turn_id": 0.5}, "turn_id", "0.5 is not a whole number from 0 up"),
        ({"turn_id": "one"}, "turn_id", "'one' is not a number"),
        ({"terminated": "maybe"}, "terminated", "'maybe' is neither true nor false"),
        ({"timestamp": "soon"}, "timestamp", "'soon' is no time"),
        ({"tokens": 1.5}, "tokens", "1.5 is not a count"),
        ({"extras": "[1]"}, "extras", "not a JSON object"),
    ],
)
def test_a_bad_field_is_quarantined_with_field_and_reason(tmp_path, value, field, reason):
    result = read(tmp_path, [row("good", 0, last=True), row(**value)])
    assert column(result, "session_id") == ["good"]
    [(line, found, why)] = reasons(result)
    assert (line, found) == ("2", field)
    assert why.startswith(reason)


def test_a_reward_as_text_is_read_with_a_remark(tmp_path):
    result = read(tmp_path, [row(reward="1.0"), row("b", reward=True)])
    assert column(result, "reward") == [1.0, 1.0]
    assert "1 rewards were text and were read as numbers." in result.warnings
    assert "1 rewards were true or false and were read as 1 or 0." in result.warnings


def test_propensities_as_probability_and_as_logarithm(tmp_path):
    result = read(tmp_path, [row(turn=0, action_prob=0.25), row(turn=1, behavior_logprob=-1.5, last=True)])
    assert column(result, "behavior_logprob") == pytest.approx([-1.3862943611198906, -1.5])  # ln 0.25


def test_half_a_character_is_replaced_with_a_remark(tmp_path):
    (tmp_path / "log.jsonl").write_text(json.dumps(row(action="cut \ud83d")) + "\n")
    result = read_logs([str(tmp_path / "log.jsonl")])
    assert column(result, "action") == ["cut ?"]
    assert result.notes["half_characters"] == 1


@pytest.mark.parametrize("line", ["[1, 2]", '"text"', "{", '{"a": ' * 3000, "null", "12"])
def test_lines_that_are_no_records(tmp_path, line):
    (tmp_path / "log.jsonl").write_text(TEXT + line + "\n")
    result = read_logs([str(tmp_path / "log.jsonl")])
    assert result.turns.num_rows == 2
    assert [r[:2] for r in reasons(result)] == [("3", "record")]


def test_values_stay_as_logged(tmp_path):
    """ "007" stays text, numbers keep every digit: nothing is guessed."""
    result = read(tmp_path, [row("007", action="007", ticket="007", big=2**70, ratio=1.0, last=True)])
    assert column(result, "session_id") == column(result, "action") == ["007"]
    assert json.loads(column(result, "extras")[0]) == {"ticket": "007", "big": 2**70, "ratio": 1.0}


def test_table_rows_of_the_wrong_width_are_refused(tmp_path):
    (tmp_path / "log.csv").write_text(
        "session_id,state,action,reward,next_state\na,x,y,1,z\nb,x,y\nc,x,y,1,z,zz\nd,x,y,1,z\n"
    )
    result = read_logs([str(tmp_path / "log.csv")])
    assert column(result, "session_id") == ["a", "d"]
    assert reasons(result) == [
        ("3", "record", "3 cells under 5 columns"),
        ("4", "record", "6 cells under 5 columns"),
    ]


def test_unknown_format_name(tmp_path):
    with pytest.raises(PreplayError, match=r"unknown format 'nope'. Known formats: auto, .*turns-jsonl"):
        read_logs([write_jsonl(tmp_path / "log.jsonl", GOOD)], format="nope")
