"""Runs one sweep, in a process of its own that tests may kill: python -m tests.sweep.drive JSON."""

import json
import os
import sys
import threading
import time
from pathlib import Path

os.environ.update(RAY_USAGE_STATS_ENABLED="0", RAY_AUTH_MODE="disabled", OMP_NUM_THREADS="1")

import ray
from ray.cluster_utils import Cluster
from rich.console import Console

from preplay.sweep import SweepConfig, run_sweep


def main(text: str) -> None:
    """``nodes``: 1 for a plain local Ray, 2 for a second raylet that is killed once ``kill_when`` exists."""
    order = json.loads(text)
    config = SweepConfig.model_validate(order["config"])
    cluster = None
    if order["nodes"] == 1:
        ray.init(num_cpus=2, include_dashboard=False, logging_level="ERROR", log_to_driver=False)
    else:
        cluster = start_two_nodes(Path(order["kill_when"]))
    run_sweep(config, resume=True, cache=Path(order["folder"]) / "cache", console=Console())
    sys.stdout.flush()
    ray.shutdown()
    if cluster:
        cluster.shutdown()
    # Ray's exit handlers report the killed raylet as an error of this process; what counts is the result above.
    os._exit(0)


def start_two_nodes(kill_when: Path) -> Cluster:
    """A head without room for trials, and two nodes; one of them dies when the file appears."""
    health = {
        "health_check_initial_delay_ms": 0,
        "health_check_period_ms": 1000,
        "health_check_timeout_ms": 3000,
        "health_check_failure_threshold": 3,
    }
    head = {"num_cpus": 0, "include_dashboard": False, "_system_config": health}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    cluster.add_node(num_cpus=1)
    victim = cluster.add_node(num_cpus=1)
    ray.init(address=cluster.address, logging_level="ERROR", log_to_driver=False)

    def watch() -> None:
        while not kill_when.exists():
            time.sleep(0.05)
        cluster.remove_node(victim, allow_graceful=False)
        kill_when.with_suffix(".killed").touch()

    threading.Thread(target=watch, daemon=True).start()
    return cluster


if __name__ == "__main__":
    main(sys.argv[1])
