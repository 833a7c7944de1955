"""Sweeps of the test trainable in a temporary folder, with models published there, too."""

import gc
import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from preplay.sweep import SweepConfig, SweepResult, run_sweep
from tests.sweep.quadratic import NAME


@pytest.fixture(autouse=True, scope="module")
def free_cpus():
    """Sweeps here need both CPUs. Ray Data's pool lives on in cycles after a worker's error was raised elsewhere."""
    gc.collect()


@pytest.fixture(autouse=True)
def registry(tmp_path, monkeypatch):
    monkeypatch.setenv("PREPLAY_MODELS", str(tmp_path / "models"))
    return tmp_path / "models"


def sweep_config(folder: Path, **changes: Any) -> SweepConfig:
    """Four rates on a grid, no scheduler, no ensemble."""
    settings: dict[str, Any] = {
        "name": "quadratic",
        "trainable": NAME,
        "base": {"log": str(folder / "trained.jsonl")},
        "space": {"rate": {"choice": [0.001, 0.003, 0.01, 0.03]}},
        "searcher": {"kind": "grid"},
        "scheduler": {"kind": "none", "budget": 9, "first": 9},
        "metrics": [{"name": "loss", "mode": "min"}],
        "resources": {"cpu": 1},
        "ensemble": {"size": 0},
        "storage": str(folder / "sweeps"),
    }
    return SweepConfig.model_validate(settings | changes)


def run(config: SweepConfig, **options: Any) -> SweepResult:
    return run_sweep(config, cache=Path(config.storage) / "cache", console=Console(quiet=True), **options)


def trained(folder: Path) -> list[tuple[float, float]]:
    """(rate, share) of every stage that was really trained, in order."""
    file = folder / "trained.jsonl"
    rows = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    return [(row["rate"], row["share"]) for row in rows]
