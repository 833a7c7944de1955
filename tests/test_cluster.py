"""cluster.yaml passes Ray's own schema, and the check can fail."""

from pathlib import Path

import pytest
import yaml
from ray.autoscaler._private.util import prepare_config, validate_config

ROOT = Path(__file__).parent.parent


def load() -> dict:
    return yaml.safe_load((ROOT / "cluster.yaml").read_text())


def check(config: dict) -> None:
    validate_config(prepare_config(config))


def test_cluster_file_is_valid():
    check(load())


def test_a_misspelt_key_is_caught():
    with pytest.raises(Exception, match="max_worker"):
        check(load() | {"max_worker": 3})


def test_code_is_installed_with_the_tested_versions():
    assert any("-c ~/preplay/constraints.txt" in command for command in load()["setup_commands"])
