"""A setting that nobody reads is a lie (trap 39)."""

from pathlib import Path

import pytest

import preplay_rllib
from preplay_rllib import RehearsalRunConfig, RehearsalSettings

SOURCE = "\n".join(
    f.read_text() for f in Path(preplay_rllib.__file__).parent.glob("*.py") if f.name != "_settings.py"
)


@pytest.mark.parametrize("name", [n for n in RehearsalSettings.model_fields if n != "real_ratio"])
def test_every_setting_is_read(name):
    assert f"settings.{name}" in SOURCE or f"s.{name}" in SOURCE


@pytest.mark.parametrize("name", RehearsalRunConfig.model_fields)
def test_every_field_of_a_run_is_read(name):
    assert f"config.{name}" in SOURCE or f"self.{name}" in SOURCE
