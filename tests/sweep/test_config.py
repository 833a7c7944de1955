"""A sweep's YAML: what is accepted, and what an error says."""

from pathlib import Path

import pytest
import yaml

from preplay.errors import PreplayError
from preplay.sweep import SchedulerConfig, get_trainable, read_sweep
from tests.sweep.quadratic import NAME

CONFIGS = sorted((Path(__file__).parents[2] / "tune_configs").glob("*.yaml"))
GOOD = {
    "name": "mine",
    "trainable": NAME,
    "space": {"rate": {"loguniform": [0.001, 0.1]}},
    "metrics": [{"name": "loss", "mode": "min"}],
}


def read(tmp_path: Path, **changes):
    file = tmp_path / "mine.yaml"
    file.write_text(yaml.safe_dump(GOOD | changes))
    return read_sweep(file)


def test_a_short_file_is_enough(tmp_path):
    config = read(tmp_path)
    assert config.out == "runs/sweeps/mine"
    assert config.scheduler.stages == (1, 3, 9)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"searchr": {}}, r"mine.yaml, field 'searchr': Extra inputs are not permitted"),
        (
            {"searcher": {"trials": 0}},
            r"mine.yaml, field 'searcher.trials': .*greater than or equal to 1 \(got 0\)",
        ),
        ({"space": {"rate": {"uniform": [2, 1]}}}, r"field 'space.rate': uniform needs low < high"),
        ({"space": {"rate": {"choice": [1], "uniform": [0, 1]}}}, r"field 'space.rate': give exactly one of"),
        ({"space": {"rat": {"choice": [1]}}}, r"field 'space.rat': QuadraticConfig has no field 'rat'"),
        (
            {"space": {"log": {"choice": ["a"]}}},
            r"field 'space.log': 'log' decides what trials are compared on",
        ),
        ({"base": {"raet": 1}}, r"field 'base.raet': QuadraticConfig has no field 'raet'"),
        (
            {"space": {"fault": {"choice": ["none", "explode"]}}},
            r"field 'space.fault': Input should be 'none'",
        ),
        ({"base": {"rate": "much"}}, r"field 'base.rate': .*valid number.*\(got 'much'\)"),
        (
            {"metrics": [{"name": "los", "mode": "min"}]},
            r"field 'metrics': .*no 'los'.*There are: loss \(min\)",
        ),
        ({"metrics": [{"name": "loss", "mode": "max"}]}, r"measures no 'loss' to be maximised"),
        ({"trainable": "world_modle"}, r"field 'trainable': no trainable 'world_modle'.*critic_iql"),
        ({"trainable": "world_model"}, r"field 'metrics'"),
        ({"data": {"generate": "support_desk"}}, r"field 'data': .*takes no data"),
        ({"loggers": ["wandb"]}, r"field 'loggers.0': Input should be 'tensorboard' or 'mlflow'"),
        ({"scheduler": {"kind": "pbt"}}, r"PBT needs searcher random"),
        ({"searcher": {"kind": "grid"}}, r"a grid needs choices, but 'rate' is a range"),
        ({"space": {"shift": {"choice": [1], "when": {"kid": [1]}}}}, r"names 'kid', which is not searched"),
    ],
)
def test_errors_name_file_and_field(tmp_path, changes, message):
    with pytest.raises(PreplayError, match=message):
        read(tmp_path, **changes)


def test_a_file_that_is_no_yaml(tmp_path):
    file = tmp_path / "broken.yaml"
    file.write_text("name: [")
    with pytest.raises(PreplayError, match=r"broken.yaml: cannot be read as YAML"):
        read_sweep(file)


def test_pbt_needs_training_that_goes_on(tmp_path):
    changes = {
        "trainable": "fqe",
        "data": {"generate": "support_desk"},
        "space": {"learning_rate": {"uniform": [0.001, 0.01]}},
        "metrics": [{"name": "q_error", "mode": "min"}],
        "scheduler": {"kind": "pbt"},
        "searcher": {"kind": "random"},
    }
    with pytest.raises(PreplayError, match=r"field 'scheduler.kind': PBT changes a training that goes on"):
        read(tmp_path, **changes)


@pytest.mark.parametrize("file", CONFIGS, ids=lambda f: f.name)
def test_shipped_configurations_are_valid(file):
    pytest.importorskip("preplay_rllib") if "rehearsal" in file.name else None
    config = read_sweep(file)
    assert get_trainable(config.trainable).metrics[config.metric.name] == config.metric.mode


def test_each_configuration_has_a_debug_twin():
    names = {file.name.removesuffix(".yaml") for file in CONFIGS}
    full = {name for name in names if not name.endswith(".debug")}
    assert full == {"critic_cql", "critic_iql", "fqe", "rehearsal_minigrid", "world_model"}
    assert names == full | {f"{name}.debug" for name in full}


def test_stages_of_the_schedulers():
    assert SchedulerConfig(kind="none", budget=9).stages == (1, 3, 9)
    assert SchedulerConfig(kind="none", budget=9, first=9).stages == (9,)
    assert SchedulerConfig(kind="asha", budget=10, first=2, reduction=2).stages == (2, 4, 8, 10)
    assert SchedulerConfig(kind="hyperband", budget=4).stages == (1, 2, 3, 4)
    assert SchedulerConfig(kind="pbt", budget=4, perturb_every=2).stages == (2, 4)
