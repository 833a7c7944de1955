"""The command on a dataset."""

import json

import pytest
import typer
from typer.testing import CliRunner

from preplay.backtest import _describe, action_notes
from preplay.cli import _backtest, _logs
from preplay.errors import PreplayError
from preplay.logs import write_dataset

app = typer.Typer()
_backtest.add_to(app)
_logs.add_to(app)


@pytest.fixture(scope="module")
def dataset(key_turns, tmp_path_factory):
    folder = tmp_path_factory.mktemp("keys") / "dataset"
    write_dataset(key_turns, str(folder), config={})
    return folder


def run(*arguments: str, command: str = "backtest"):
    result = CliRunner().invoke(app, [command, *arguments], env={"COLUMNS": "160"})
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def test_backtest_prints_and_writes(dataset, tmp_path):
    output = tmp_path / "report" / "backtest.json"
    result = run(str(dataset), "--environment-key", "room", "--actions-only", "--output", str(output))
    assert (
        "On your logs, preplay predicted 5 left-out policies, from their actions alone, with "
        in result.output
    )
    assert "chosen (nested)" in result.output
    assert len(json.loads(output.read_text())["policies"]) == 5


def test_only_predicts_one_policy(dataset):
    arguments = (str(dataset), "--only", "p70", "--environment-key", "room", "--labelled")
    assert run(*arguments, "9/10").output.startswith("p70 would solve ")
    with pytest.raises(PreplayError, match="SOLVED/SESSIONS, as 4/10, not 'nine'"):
        run(*arguments, "nine")


def test_wrong_group_is_said(dataset):
    with pytest.raises(PreplayError, match="POLICY=GROUP"):
        run(str(dataset), "--group", "p70")


def test_the_data_card_names_tool_families_and_leaks(dataset):
    output = run(str(dataset), command="inspect").output
    assert "Actions: 100% json." in output
    assert "Session length gives the outcome away" in output
    assert "sessions stop at success" in output


def test_a_sample_says_the_same(key_turns, monkeypatch):
    """Twenty sampled sessions say the same as all of them."""
    monkeypatch.setattr(_describe, "SAMPLE", 20)
    first, *others = action_notes(key_turns, seed=1)
    assert first == "Actions: 100% json."
    assert any("stop at success" in sentence for sentence in others)


def test_without_a_solved_session_no_leak_is_claimed(key_turns):
    assert action_notes(key_turns, solved_at=99.0) == ["Actions: 100% json."]
