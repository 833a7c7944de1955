"""Published models: names, versions, and the commands that show them."""

import json

import pytest
import yaml
from typer.testing import CliRunner

from preplay.artifacts import open_artifact, write_artifact
from preplay.cli import app
from preplay.errors import PreplayError
from preplay.models import differences, load_manifest, published_models
from preplay.names import next_version, versions


@pytest.fixture(autouse=True)
def registry(tmp_path, monkeypatch):
    monkeypatch.setenv("PREPLAY_MODELS", str(tmp_path / "models"))
    return tmp_path / "models"


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


def test_a_name_is_its_newest_version():
    for rate in range(11):
        publish("numbers", float(rate))
    assert versions("numbers")[-2:] == [10, 11]
    assert open_artifact("models:numbers", "ensemble").path.name == "v11"
    assert open_artifact("models:numbers@2", "ensemble").path.name == "v2"


def test_what_is_not_there_is_told_with_what_is():
    publish("numbers", 1.0)
    for name, message in (
        ("models:other", "no published model 'models:other'.*none of this name"),
        ("models:numbers@2", "no published model 'models:numbers@2'.*numbers@1"),
        ("models:../numbers", "no published model"),
    ):
        with pytest.raises(PreplayError, match=message):
            open_artifact(name, "ensemble")
    with pytest.raises(PreplayError, match="cannot name a model"):
        next_version("a/b")
    with pytest.raises(PreplayError, match="no finished artifact here"):
        load_manifest("some/folder")


def test_differences_by_hand():
    publish("numbers", 1.0)
    publish("numbers", 2.0)
    changed = {d.field: (d.first, d.second) for d in differences("numbers@1", "numbers@2")}
    assert changed == {
        "config.members.0.parameters.rate": ("1", "2"),
        "metrics.validation.ensemble": ("0.1", "0.2"),
    }
    assert [m.figures for m in published_models()] == [
        {"validation.ensemble": 0.1},
        {"validation.ensemble": 0.2},
    ]
