"""What a waiting evaluation was accepted with stays what it was."""

import shutil
from pathlib import Path

from preplay.artifacts import write_artifact
from preplay_serve._catalog import refresh
from preplay_serve._config import ServerConfig
from preplay_serve.evaluator._execute import _path
from preplay_serve.store import EvaluationSpec, open_store

NAMES = {"dataset": "logs", "world_models": "models"}
CONTENT = {"dataset": "content.txt", "world_models": "member-0/content.txt"}


def read(paths: dict[str, str]) -> list[str]:
    return [(Path(paths[kind]) / file).read_text() for kind, file in CONTENT.items()]


def write(folder, kind, content):
    with write_artifact(folder, kind) as staging:
        (staging.path / "content.txt").write_text(content)


def test_an_accepted_evaluation_keeps_its_versions(tmp_path):
    config = ServerConfig(models=str(tmp_path / "runs"), state=str(tmp_path / "runs" / "serve"))
    store = open_store(config.database_url)
    logs, models = tmp_path / "runs" / "logs", tmp_path / "runs" / "models"
    write(logs, "embedded", "first")
    write(models / "member-0", "world_model", "first")
    assert refresh(config, store) == []
    versions = {
        "dataset": store.artifacts.get("dataset", "logs").version,
        "world_models": store.artifacts.get("world_models", "models").version,
    }
    spec = EvaluationSpec(policies=("env:a",), dataset="logs", models="models")
    made, _ = store.evaluations.create(spec, token="t", versions=versions)

    write(logs, "embedded", "second")
    shutil.rmtree(models)
    write(models / "member-0", "world_model", "second")
    assert refresh(config, store) == []
    assert [record.name for record in store.artifacts.list("dataset")] == [
        "logs"
    ]  # the state is no model folder
    kept = {kind: _path(store, kind, name, versions[kind]) for kind, name in NAMES.items()}
    now = {kind: store.artifacts.get(kind, name).path for kind, name in NAMES.items()}
    assert read(kept) == ["first", "first"]
    assert read(now) == ["second", "second"]

    store.evaluations.cancel(made.id)
    refresh(config, store)
    assert len(list((tmp_path / "runs" / "serve" / "versions").iterdir())) == 2
    assert read(now) == ["second", "second"]
