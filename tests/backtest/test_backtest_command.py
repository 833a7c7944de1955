"""The command on a dataset."""

import json

import pytest
import typer
from typer.testing import CliRunner

from preplay.cli import _backtest
from preplay.errors import PreplayError
from preplay.logs import write_dataset

app = typer.Typer()
_backtest.add_to(app)
app.command()(lambda: None)  # a second command, so that the first one keeps its name


@pytest.fixture(scope="module")
def dataset(key_turns, tmp_path_factory):
    folder = tmp_path_factory.mktemp("keys") / "dataset"
    write_dataset(key_turns, str(folder), config={})
    return folder


def run(*arguments: str):
    result = CliRunner().invoke(app, ["backtest", *arguments], env={"COLUMNS": "160"})
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def test_backtest_prints_and_writes(dataset, tmp_path):
    output = tmp_path / "report" / "backtest.json"
    result = run(str(dataset), "--environment-key", "room", "--output", str(output))
    assert "On your logs, preplay predicted 5 left-out policies" in result.output
    assert "chosen (nested)" in result.output
    assert len(json.loads(output.read_text())["policies"]) == 5


def test_only_predicts_one_policy(dataset):
    result = run(str(dataset), "--only", "p70", "--environment-key", "room")
    assert result.output.startswith("p70 would solve ")


def test_wrong_group_is_said(dataset):
    with pytest.raises(PreplayError, match="POLICY=GROUP"):
        run(str(dataset), "--group", "p70")
