"""The command line as a user types it: logs of one's own, from file to report."""

import json
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from preplay.cli import app
from preplay.errors import PreplayError
from preplay.report import read_report

runner = CliRunner()
COMMANDS = (
    "demo",
    "ingest",
    "inspect",
    "embed",
    "train",
    "clone",
    "config",
    "evaluate",
    "compare",
    "shadow",
    "truth",
    "backtest",
)


def preplay(*arguments: object) -> str:
    result = runner.invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def write_jsonl(path, sessions: int) -> None:
    """A shop bot that either asks or guesses; asking first gets the order right."""
    lines = []
    for s in range(sessions):
        asks = s % 2 == 0
        seen = f"I want order number {s % 7} changed."
        turns = [("Which item do you mean?" if asks else "I changed it.", 0.0 if asks else -1.0)]
        replies = ["The red one." if asks else "That was wrong, goodbye."]
        if asks:
            turns.append(("I changed the red one.", 1.0))
            replies.append("Thank you, that is right.")
        for t, ((action, reward), reply) in enumerate(zip(turns, replies, strict=True)):
            row = dict(
                session_id=f"s{s}", turn_id=t, state=seen, action=action, reward=reward, next_state=reply
            )
            lines.append(json.dumps(row | {"policy": "asks" if asks else "guesses"}))
            seen = reply
    path.write_text("\n".join([*lines, '{"session_id": "broken", "turn_id": 0']) + "\n")


@pytest.mark.parametrize("command", COMMANDS)
def test_help_shows_an_example(command):
    assert "preplay " + command in preplay(command, "--help").replace("\n", " ")


def test_truth_prints_every_policy():
    output = preplay("truth", "env:expert", "env:random", "--sessions", 200, "--seed", 1)
    assert "expert" in output
    assert "random" in output


def test_formats_are_listed_with_examples():
    output = preplay("formats")
    for name in ("turns", "openai", "tau-bench", "intercode", "swe-agent"):
        assert name in output


def test_inspect_writes_a_page(tmp_path):
    write_jsonl(tmp_path / "log.jsonl", 4)
    output = preplay("inspect", tmp_path / "log.jsonl", "--html", tmp_path / "card.html")
    page = (tmp_path / "card.html").read_text()
    assert "put aside" in output
    assert page.startswith("<!DOCTYPE html>")
    assert "sessions" in page


@pytest.fixture(scope="module")
def own_logs(ray2, tmp_path_factory):
    """Logs of one's own, ingested, embedded and trained on."""
    folder = tmp_path_factory.mktemp("own")
    write_jsonl(folder / "log.jsonl", 40)
    printed = preplay("ingest", folder / "log.jsonl", "--output", folder / "dataset")
    preplay("embed", folder / "dataset", "--output", folder / "embedded", "--cache", folder / "cache")
    train = ("train", folder / "embedded", "--output", folder / "models", "--preset", "debug", "--seed", 3)
    printed += preplay(*train)
    return folder, printed, train


def test_bad_records_are_counted_and_kept_aside(own_logs):
    folder, printed, _ = own_logs
    assert "1 records were put aside" in printed
    (record,) = [json.loads(line) for line in (folder / "dataset" / "quarantine.jsonl").open()]
    assert record["source"].endswith("log.jsonl:61")


def test_a_python_policy_gets_bounds_and_a_report(own_logs, monkeypatch):
    folder, _, _ = own_logs
    (folder / "my_agent.py").write_text(
        "def act(state):\n    return 'Which item do you mean?' if 'order' in state else 'I changed the red one.'\n"
    )
    monkeypatch.syspath_prepend(str(folder))
    output = preplay(
        "evaluate",
        "python:my_agent:act",
        *("--data", folder / "embedded", "--models", folder / "models", "--output", folder / "report"),
        *("--cache", folder / "cache", "--preset", "debug"),
    )
    assert "report.html" in output
    report = read_report(folder / "report")
    (policy,) = report.policies
    assert policy.headline.verdict in ("bounds only", "not identified")
    assert {e.estimator for e in policy.estimates} == {"mean/1", "model.dm/1", "fqe.dm/1"}
    assert {b.name: b.sessions for b in report.behavior} == {"asks": 20, "guesses": 20}
    assert report.logged_mean == pytest.approx(0.5 * 0.97 - 0.5)


def test_a_policy_that_cannot_answer_is_told_before_anything_is_imagined(own_logs, monkeypatch):
    folder, _, _ = own_logs
    (folder / "numbers_agent.py").write_text("def act(state):\n    return 42\n")
    monkeypatch.syspath_prepend(str(folder))
    where = ("--data", folder / "embedded", "--models", folder / "models", "--output", folder / "none")
    arguments = ["evaluate", "python:numbers_agent:act", *map(str, where), "--cache", str(folder / "cache")]
    with pytest.raises(PreplayError, match="answered int 42 instead of text"):
        runner.invoke(app, arguments, catch_exceptions=False)
    assert not (folder / "none" / "rollouts").exists()


def test_a_clone_is_judged_without_its_own_sessions(own_logs):
    folder, _, _ = own_logs
    preplay("clone", folder / "embedded", "--policy", "asks", "--output", folder / "clone")
    where = ("--data", folder / "embedded", "--models", folder / "models", "--output", folder / "report2")
    more = ("--cache", folder / "cache", "--preset", "debug", "--without", "asks")
    preplay("evaluate", f"cloned:{folder / 'clone'}", *where, *more)
    report = read_report(folder / "report2")
    assert report.policies[0].name == "asks"
    assert [b.name for b in report.behavior] == ["guesses"]


def write_shadow(path, first: str) -> None:
    """In every logged state: ``first`` as the first action, then the right change."""
    rows = [
        {"session_id": f"s{s}", "turn": t, "action": "I changed the red one." if t else first}
        for s in range(40)
        for t in range(2 if s % 2 == 0 else 1)
    ]
    path.write_text("\n".join(json.dumps(row) for row in rows))


def test_shadow_actions_alone_tell_asking_from_guessing(own_logs):
    """Asking is worth .97 (1 after one turn), guessing -1; 40 of 60 logged actions are those of asking."""
    folder, _, _ = own_logs
    values = {}
    for name, first in (("ask", "Which item do you mean?"), ("guess", "I changed it.")):
        write_shadow(folder / f"{name}.jsonl", first)
        output = preplay(
            *("shadow", folder / f"{name}.jsonl", "--data", folder / "embedded"),
            *("--models", folder / "models", "--output", folder / f"{name}.json"),
            *("--cache", folder / "cache", "--preset", "debug"),
        )
        assert "fqe.dm" in output
        found = json.loads((folder / f"{name}.json").read_text())
        assert found["agreement"] == pytest.approx(40 / 60)
        values[name] = found["estimates"][0]["raw_value"]
    assert values["ask"] == pytest.approx(0.97, abs=0.1)
    assert values["guess"] == pytest.approx(-1, abs=0.1)


def test_a_state_without_a_shadow_action_is_named(own_logs):
    folder, _, _ = own_logs
    path = folder / "thin.jsonl"
    path.write_text(json.dumps({"session_id": "s0", "turn": 0, "action": "Hello."}))
    arguments = ["shadow", str(path), "--data", str(folder / "embedded"), "--models", str(folder / "models")]
    with pytest.raises(PreplayError, match="59 of 60 logged states have no shadow action"):
        runner.invoke(app, arguments, catch_exceptions=False)


def test_training_again_keeps_finished_members(own_logs):
    folder, _, train = own_logs
    manifest = folder / "models" / "member-0" / "manifest.json"
    before = manifest.stat().st_mtime_ns
    preplay(*train)
    assert manifest.stat().st_mtime_ns == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["embed", "nowhere", "--output", "x"], "no finished artifact here"),
        (["ingest", "nowhere.jsonl", "--output", "x"], "nowhere.jsonl"),
        (["truth", "env:nobody"], "support_desk has no policy 'nobody'"),
        (["train", "x", "--output", "y", "--config", "missing.yaml"], "missing.yaml"),
    ],
)
def test_user_errors_are_plain_words(arguments, message, tmp_path):
    command = [sys.executable, "-c", "from preplay.cli import main; main()", *arguments]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1
    assert done.stderr.startswith("error: ")
    assert message in done.stderr.replace("\n", " ")
    assert "Traceback" not in done.stderr
