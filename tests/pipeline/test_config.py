"""Configuration: presets, YAML on top, clear refusals."""

import pytest
import yaml

from preplay.errors import PreplayError
from preplay.pipeline import PRESETS, config_yaml, load_config


def test_yaml_changes_only_what_it_names(tmp_path):
    file = tmp_path / "c.yaml"
    file.write_text("members: 3\nworld_model:\n  optimiser:\n    steps: 7\n")
    config = load_config(file, seed=5)
    assert (config.members, config.world_model.optimiser.steps, config.seed) == (3, 7, 5)
    assert config.world_model.optimiser.batch == PRESETS["default"].world_model.optimiser.batch


def test_printed_configuration_reads_back(tmp_path):
    file = tmp_path / "c.yaml"
    file.write_text(config_yaml(PRESETS["debug"]))
    assert load_config(file) == PRESETS["debug"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("world_model: {optimizer: {}}", r"field 'world_model\.optimizer': Extra inputs are not permitted"),
        ("members: 0", r"field 'members': Input should be greater than or equal to 1 \(got 0\)"),
        ("members: [", "cannot be read as YAML"),
        ("- 1", "must hold a mapping"),
    ],
)
def test_mistakes_name_file_and_field(tmp_path, text, message):
    file = tmp_path / "c.yaml"
    file.write_text(text)
    with pytest.raises(PreplayError, match=message) as error:
        load_config(file)
    assert str(file) in str(error.value)


def test_every_field_of_the_configuration_is_printed():
    assert yaml.safe_load(config_yaml(PRESETS["default"])) == PRESETS["default"].model_dump(mode="json")
