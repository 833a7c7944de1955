"""The commands, as a user starts them."""

import yaml
from typer.testing import CliRunner

from preplay.cli import app
from tests.sweep.conftest import sweep_config


def call(*arguments: str):
    return CliRunner().invoke(app, [str(a) for a in arguments], env={"COLUMNS": "200"})


def test_a_sweep_from_the_command_line(ray2, tmp_path, registry):
    file = tmp_path / "mine.yaml"
    config = sweep_config(tmp_path, space={"rate": {"choice": [0.003, 0.01]}}, ensemble={"size": 1})
    file.write_text(yaml.safe_dump(config.model_dump(mode="json")))
    result = call("sweep", file, "--out", tmp_path / "out", "--registry", registry)
    assert result.exit_code == 0, result.output
    assert "Published: models:quadratic@1, made of trials [1]" in result.output
    assert (tmp_path / "out" / "report.html").exists()
    assert "trial 1: loss" in result.output


def test_a_wrong_file_is_refused_in_plain_words(tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text("name: mine\ntrainable: nothing\nspace: {a: {choice: [1]}}\nmetrics: [{name: b}]\n")
    result = call("sweep", file)
    assert "no trainable 'nothing'" in str(result.exception)
    assert "mine.yaml, field 'trainable'" in str(result.exception)
