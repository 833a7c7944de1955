"""Whole sweeps of a small trainable on Ray: results, faults, resumption, data sharing."""

import json

import numpy as np
import pytest
import yaml
from rich.console import Console

from preplay.artifacts import open_artifact
from preplay.errors import PreplayError
from preplay.models import differences, load_manifest, published_models
from preplay.sweep import SweepResult, read_result, run_sweep
from tests.sweep.conftest import run, sweep_config, trained
from tests.sweep.quadratic import STEPS


def loss_after(rate: float, steps: int = STEPS) -> float:
    """(x - 3)^2 after gradient descent from 0 by hand: the distance shrinks by 1 - 2 rate in each step."""
    return 9 * (1 - 2 * rate) ** (2 * steps)


@pytest.fixture(scope="module")
def halved(ray2, tmp_path_factory) -> tuple[SweepResult, list[tuple[float, float]]]:
    """Successive halving over nine rates, with an ensemble."""
    folder = tmp_path_factory.mktemp("halved")
    config = sweep_config(
        folder,
        space={"rate": {"choice": [0.001, 0.002, 0.003, 0.004, 0.005, 0.006, 0.007, 0.008, 0.03]}},
        scheduler={"kind": "asha", "budget": 9, "reduction": 3},
        ensemble={"size": 2, "candidates": 3, "name": "numbers"},
        resources={"cpu": 0.5},
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PREPLAY_MODELS", str(folder / "models"))
        result = run(config)
    return result, trained(folder)


def test_halving_stops_bad_trials_and_keeps_the_best(halved):
    result, stages = halved
    best = result.ranked()[0]
    assert best.parameters == {"rate": 0.03}
    assert best.metrics["loss"] == pytest.approx(loss_after(0.03))
    # In the order of numbers each trial is better than all before it, so that all go on: the worst case of halving.
    assert [t.status for t in result.trials] == ["finished"] * 9
    assert len(stages) == 27


def test_each_stage_is_trained_once_and_goes_on_from_the_last(halved):
    result, stages = halved
    assert sorted(set(stages)) == sorted(stages)
    history = result.trials[0].history
    assert [row["budget"] for row in history] == [1, 3, 9]
    assert [row["loss"] for row in history] == pytest.approx([loss_after(0.001, s) for s in (10, 30, 90)])


def test_trials_see_the_data_without_a_copy(halved):
    result, _ = halved
    assert {t.metrics["copied"] for t in result.trials} == {0.0}


def test_the_ensemble_is_published_with_all_that_made_it(halved, tmp_path, monkeypatch):
    result, _ = halved
    folder = result.config.storage.removesuffix("/sweeps")
    monkeypatch.setenv("PREPLAY_MODELS", f"{folder}/models")
    assert result.ensemble == "models:numbers@1"
    manifest = open_artifact(result.ensemble, "ensemble").manifest
    assert [m["trial"] for m in manifest.config["members"]] == result.members
    assert manifest.inputs == {"numbers": "100000"}
    assert manifest.metrics["validation"]["ensemble"] <= manifest.metrics["validation"]["best_trial"]
    seeds = [m["seed"] for m in manifest.config["members"]]
    assert len(set(seeds)) == len(seeds)
    (model,) = published_models()
    assert (model.name, model.kind, model.members) == ("numbers@1", "ensemble", len(result.members))
    assert load_manifest("numbers").content_hash == load_manifest("models:numbers@1").content_hash
    assert differences("numbers", "numbers@1") == []
    with pytest.raises(PreplayError, match=r"no published model 'numbers@7'.*numbers@1"):
        load_manifest("numbers@7")


def test_the_folder_of_a_sweep(halved):
    result, _ = halved
    stored = read_result(result.config.out)
    assert stored.trials == result.trials
    with open(f"{result.config.out}/best.yaml") as file:
        assert yaml.safe_load(file)["rate"] == 0.03
    with open(f"{result.config.out}/report.html") as file:
        page = file.read()
    assert "<script" not in page
    assert "http" not in page.replace("http-equiv", "")
    assert page.count("<polyline") == 18
    assert "trial 8" in page


def test_a_sweep_is_not_overwritten_and_a_complete_one_not_repeated(halved):
    result, stages = halved
    with pytest.raises(PreplayError, match=r"a sweep stands here already.*--resume"):
        run(result.config)
    assert run(result.config, resume=True).trials == result.trials
    folder = result.config.base["log"]
    with open(folder) as log:
        assert len(log.readlines()) == len(stages)


def test_a_sweep_with_other_settings_is_not_resumed(halved):
    result, _ = halved
    with pytest.raises(PreplayError, match=r"has other settings \(retries\)"):
        run(result.config.model_copy(update={"retries": 7}), resume=True)


def test_faults_are_marked_with_their_reason_and_the_sweep_goes_on(ray2, tmp_path):
    config = sweep_config(
        tmp_path,
        space={"fault": {"choice": ["raise", "nan", "die", "die_once", "none"]}},
        scheduler={"kind": "none", "budget": 2, "reduction": 2},
        retries=1,
    )
    result = run(config)
    raised, nan, died, died_once, fine = result.trials
    assert raised.status == nan.status == died.status == "failed"
    assert raised.reason == "PreplayError: it broke on purpose."
    assert "loss is nan at budget 2" in nan.reason
    assert "worker process died" in died.reason
    assert (died_once.status, fine.status) == ("finished", "finished")
    assert died_once.metrics["loss"] == fine.metrics["loss"] == pytest.approx(loss_after(0.01))
    # The first stage was kept: no retry trained it again.
    assert [share for _, share in trained(tmp_path)].count(0.5) == 5


def test_an_interrupted_sweep_repeats_no_finished_stage(ray2, tmp_path):
    whole = run(sweep_config(tmp_path / "whole", storage=str(tmp_path / "whole" / "s")))
    stopped = sweep_config(tmp_path, stop={"target": 5.0}, resources={"cpu": 2})
    first = run(stopped)
    done = [t for t in first.trials if t.status == "finished"]
    assert 0 < len(done) < 4
    # A driver that was killed leaves no sweep.json.
    (tmp_path / "sweeps" / "quadratic" / "sweep.json").unlink()
    file = tmp_path / "sweeps" / "quadratic" / "sweep.yaml"
    settings = yaml.safe_load(file.read_text())
    file.write_text(yaml.safe_dump(settings | {"stop": settings["stop"] | {"target": None}}))
    resumed = run(sweep_config(tmp_path, resources={"cpu": 2}), resume=True)
    assert len(trained(tmp_path)) == 4
    assert [t.metrics for t in resumed.trials] == [t.metrics for t in whole.trials]
    assert [t.parameters for t in resumed.trials] == [t.parameters for t in whole.trials]


def test_several_metrics_give_a_front_and_storage_may_be_a_uri(ray2, tmp_path):
    config = sweep_config(
        tmp_path,
        space={"rate": {"loguniform": [0.001, 0.03]}},
        searcher={"kind": "tpe", "trials": 5, "startup": 2, "lag": 2},
        metrics=[{"name": "loss", "mode": "min"}, {"name": "cost", "mode": "min"}],
        storage=f"file://{tmp_path}/uri",
    )
    result = run_sweep(config, cache=tmp_path / "cache", console=Console(quiet=True))
    assert read_result(f"{tmp_path}/uri/quadratic").trials == result.trials
    assert [t.status for t in result.trials] == ["finished"] * 5
    costs = np.array([t.metrics["cost"] for t in result.ranked()])
    assert (np.diff(costs) <= 0).all()  # with this trainable a lower loss always costs more


def test_unwritable_storage_ends_before_any_training(tmp_path):
    (tmp_path / "sweeps").write_text("a file")
    with pytest.raises(PreplayError, match="cannot be stored here"):
        run(sweep_config(tmp_path))
    assert trained(tmp_path) == []


def test_storage_that_is_lost_on_the_way_ends_the_sweep_and_resumes(ray2, tmp_path):
    config = sweep_config(
        tmp_path,
        space={"fault": {"choice": ["none", "lose", "raise"]}},
        resources={"cpu": 2},
        retries=1,
    )
    with pytest.raises(PreplayError, match=r"cannot be stored here"):
        run(config)
    assert len(trained(tmp_path)) == 2  # the lost one was not trained again, the third one not begun
    sweep = tmp_path / "sweeps" / "quadratic"
    (sweep / "trials").unlink()
    (sweep / "lost").rename(sweep / "trials")
    (sweep / "lost").mkdir()  # tells the trainable not to do it again
    fine, mended, raised = run(config, resume=True).trials
    assert (fine.status, mended.status, raised.status) == ("finished", "finished", "failed")
    assert [share for _, share in trained(tmp_path)] == [1.0] * 3


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["hyperband", "pbt"])
def test_rays_own_schedulers(ray2, tmp_path, kind):
    config = sweep_config(
        tmp_path,
        space={"rate": {"loguniform": [0.001, 0.03]}},
        searcher={"kind": "random", "trials": 6},
        scheduler={"kind": kind, "budget": 4, "reduction": 2},
    )
    result = run(config)
    assert len(result.trials) == 6
    assert result.ranked()[0].metrics["loss"] <= loss_after(0.01, 90) + 1


@pytest.mark.slow
def test_tensorboard_export(ray2, tmp_path):
    result = run(sweep_config(tmp_path, loggers=["tensorboard"], space={"rate": {"choice": [0.01]}}))
    assert list((tmp_path / "sweeps" / result.config.name).rglob("events.out.tfevents.*"))


@pytest.mark.slow
def test_mlflow_export(ray2, tmp_path, monkeypatch):
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path}/mlflow.db")
    result = run(sweep_config(tmp_path, loggers=["mlflow"], space={"rate": {"choice": [0.01]}}))
    client = mlflow.MlflowClient()
    experiment = client.get_experiment_by_name(result.config.name)
    assert experiment
    logged = client.search_runs([experiment.experiment_id])
    assert [run.info.status for run in logged] == ["FINISHED"]
    assert logged[0].data.params["parameters/rate"] == "0.01"
    assert logged[0].data.metrics["loss"] == pytest.approx(result.ranked()[0].metrics["loss"])


def test_result_is_plain_data(halved):
    result, _ = halved
    assert SweepResult.model_validate(json.loads(result.model_dump_json())) == result
