"""The commands, as a user starts them."""

import json

import yaml
from typer.testing import CliRunner

from preplay.artifacts import write_artifact
from preplay.cli import app
from preplay.names import next_version
from tests.sweep.conftest import sweep_config


def call(*arguments: str):
    return CliRunner().invoke(app, [str(a) for a in arguments], env={"COLUMNS": "200"})


def publish(name: str, rate: float) -> None:
    config = {"members": [{"trial": 1, "parameters": {"rate": rate}}], "trainable": "number"}
    with write_artifact(
        next_version(name), "ensemble", config=config, inputs={"embedded": "abc"}, seed=3
    ) as staging:
        (staging.path / "rate.json").write_text(json.dumps(rate))
        staging.metrics["validation"] = {"ensemble": rate / 10}


def test_models_list_show_and_diff(registry):
    publish("numbers", 0.5)
    publish("numbers", 0.25)
    listed = call("models", "list", "--registry", registry).output
    assert "numbers@1" in listed
    assert "validation.ensemble=0.025" in listed
    shown = yaml.safe_load(call("models", "show", "numbers", "--registry", registry).output)
    assert shown["config"]["members"][0]["parameters"] == {"rate": 0.25}
    assert (shown["seed"], shown["inputs"]) == (3, {"embedded": "abc"})
    changed = call("models", "diff", "numbers@1", "numbers@2", "--registry", registry).output
    assert "config.members.0.parameters.rate" in changed
    assert "0.25" in changed
    assert "inputs" not in changed
    same = call("models", "diff", "numbers@2", "numbers", "--registry", registry).output
    assert "do not differ" in same


def test_versions_are_never_overwritten(registry):
    for rate in (1.0, 2.0, 3.0):
        publish("numbers", rate)
    assert [json.loads((registry / "numbers" / f"v{v}" / "rate.json").read_text()) for v in (1, 2, 3)] == [
        1,
        2,
        3,
    ]


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
