"""Real kills: the driver by SIGKILL, a whole node by its raylet; and what the sweep looks like afterwards."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import psutil
import pytest

from preplay.sweep import SweepConfig, SweepResult, read_result
from tests._processes import wait_for
from tests.sweep.conftest import sweep_config, trained

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.slow


def halving(folder: Path) -> SweepConfig:
    """TPE and halving: proposals and decisions both depend on what came before."""
    return sweep_config(
        folder,
        base={"log": str(folder / "trained.jsonl"), "seconds": 0.4},
        space={"rate": {"loguniform": [0.001, 0.03]}, "shift": {"uniform": [0.0, 1.0]}},
        searcher={"kind": "tpe", "trials": 10, "startup": 3, "lag": 2},
        scheduler={"kind": "asha", "budget": 9, "reduction": 3},
        retries=3,
    )


def start(
    folder: Path,
    config: SweepConfig,
    *,
    environment: Mapping[str, str] | None = None,
    prefix: Sequence[str] = (),
    **order,
) -> subprocess.Popen:
    content = json.dumps(
        {"config": config.model_dump(mode="json"), "nodes": 1, "folder": str(folder)} | order
    )
    # A cluster of several nodes leaves its address in Ray's folder, where other processes would find and join it.
    own = tempfile.mkdtemp(prefix="ray-")  # short: paths of sockets are limited
    return subprocess.Popen(
        [*prefix, sys.executable, "-m", "tests.sweep.drive", content],
        env=os.environ | {"PYTHONPATH": str(ROOT), "RAY_TMPDIR": own} | (environment or {}),
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )


def finish(process: subprocess.Popen) -> None:
    _, errors = process.communicate(timeout=500)
    assert process.returncode == 0, errors.decode()[-6000:]


def outcome(result: SweepResult) -> list[tuple]:
    """All that must not depend on kills; times do."""
    return [(t.number, t.parameters, t.status, t.budget, t.metrics) for t in result.trials]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory) -> tuple[SweepResult, int]:
    folder = tmp_path_factory.mktemp("undisturbed")
    finish(start(folder, halving(folder)))
    return read_result(halving(folder).out), len(trained(folder))


def test_a_killed_driver_is_resumed_to_the_same_result(undisturbed, tmp_path):
    whole, stages = undisturbed
    process = start(tmp_path, halving(tmp_path))
    wait_for(lambda: len(trained(tmp_path)) >= 6, timeout=300)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    wait_for_quiet(tmp_path)
    before = trained(tmp_path)
    assert len(before) < stages
    finish(start(tmp_path, halving(tmp_path)))
    resumed = read_result(halving(tmp_path).out)
    assert outcome(resumed) == outcome(whole)
    assert resumed.ranked()[0].number == whole.ranked()[0].number
    # A stage that was being written when the driver died may be trained again, one per worker; no other.
    assert stages <= len(trained(tmp_path)) <= stages + 2


def test_a_killed_node_costs_its_running_stages_and_nothing_else(undisturbed, tmp_path):
    whole, stages = undisturbed
    kill_when = tmp_path / "kill"
    process = start(tmp_path, halving(tmp_path), nodes=2, kill_when=str(kill_when))
    wait_for(lambda: len(trained(tmp_path)) >= 5, timeout=300)
    kill_when.touch()
    finish(process)
    assert kill_when.with_suffix(".killed").exists()
    assert outcome(read_result(halving(tmp_path).out)) == outcome(whole)
    assert stages <= len(trained(tmp_path)) <= stages + 2


def test_a_trial_that_takes_all_memory_is_ended_by_ray_and_marked(tmp_path):
    """Ray's own memory monitor, with a limit a few GB above what the machine uses now."""
    memory = psutil.virtual_memory()
    if memory.available < 8e9:
        pytest.skip("less than 8 GB of memory are free")
    limit = (memory.total - memory.available + 4e9) / memory.total
    config = sweep_config(tmp_path, space={"fault": {"choice": ["none", "hog"]}}, retries=1)
    environment = {"RAY_memory_usage_threshold": f"{limit:.3f}", "RAY_memory_monitor_refresh_ms": "100"}
    finish(start(tmp_path, config, environment=environment))
    fine, hog = read_result(config.out).trials
    assert (fine.status, hog.status) == ("finished", "failed")
    assert hog.reason == "out of memory: Ray ended the worker before the machine ran out"


def test_a_disk_that_fills_ends_the_sweep_with_its_reason(tmp_path):
    """On a small disk of its own, mounted in a namespace of its own."""
    mount = ["unshare", "-rm", "sh", "-c", f'mount -t tmpfs -o size=560m none {tmp_path} && exec "$@"', "sh"]
    if shutil.which("unshare") is None or subprocess.run([*mount, "true"], capture_output=True).returncode:
        pytest.skip("no mount namespaces here")
    config = sweep_config(
        tmp_path,
        base={"log": str(tmp_path / "trained.jsonl"), "seconds": 0.1},
        space={"fault": {"choice": ["none", "fill"]}, "rate": {"choice": [0.01, 0.02, 0.03]}},
        resources={"cpu": 2},
    )
    process = start(tmp_path, config, prefix=mount)
    _, errors = process.communicate(timeout=300)
    assert process.returncode
    assert "the sweep cannot be stored here" in errors.decode()
    assert "No space left on device" in errors.decode()


def wait_for_quiet(folder: Path) -> None:
    """Workers of a killed driver end by themselves a little later; wait until nothing more is trained."""
    count = -1
    while count != len(trained(folder)):
        count = len(trained(folder))
        time.sleep(6)
