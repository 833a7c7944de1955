"""Remote learner and env runners on two nodes, and as a Tune trainable; each in its own process and Ray."""

import subprocess
import sys
import textwrap

import pytest

QUIET = """
import logging, os
os.environ.update(RAY_USAGE_STATS_ENABLED="0", RAY_AUTH_MODE="disabled", OMP_NUM_THREADS="1")
os.environ.pop("RAY_ADDRESS", None)
import ray
from preplay_rllib import MiniGrid, RehearsalPPOConfig
def config(seed=0):
    return (
        RehearsalPPOConfig()
        .environment(MiniGrid, env_config={"id": "MiniGrid-Empty-5x5-v0"})
        .debugging(seed=seed, log_level="ERROR")
        .rehearsal(real_ratio=0.2, rounds=1, more_rounds=0, gates=False)
        .reporting(min_time_s_per_iteration=0, min_sample_timesteps_per_iteration=0)
    )
"""

CLUSTER = """
from ray.cluster_utils import Cluster
cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 2, "include_dashboard": False})
cluster.add_node(num_cpus=2)
ray.init(address=cluster.address, logging_level="ERROR", log_to_driver=False)
assert len(ray.nodes()) == 2
made = config().env_runners(num_env_runners=2, num_envs_per_env_runner=8).learners(num_learners=1)
algorithm = made.build_algo()
for _ in range(3):
    result = algorithm.train()
assert not algorithm.learner_group.is_local
assert float(result["rehearsal"]["open"]) == 1.0, result["rehearsal"]
assert float(result["rehearsal"]["imagined_rows"]) > 1000, result["rehearsal"]
seeds = algorithm.env_runner_group.foreach_env_runner(lambda w: w._seed, local_env_runner=False)
algorithm.restart_episodes()
seeds += algorithm.env_runner_group.foreach_env_runner(lambda w: w._seed, local_env_runner=False)
assert len(set(seeds)) == 4, seeds  # ray#46986: every env runner the same seed
path = algorithm.save_to_path()
rows = len(algorithm.engine.replay)
again = config().env_runners(num_env_runners=2, num_envs_per_env_runner=8).learners(num_learners=1)
algorithm.stop()
again = again.build_algo()
again.restore_from_path(path)
assert len(again.engine.replay) == rows
again.train()
again.stop()
ray.shutdown()
cluster.shutdown()
print("done")
"""

TUNE = """
from ray import tune
ray.init(address="local", num_cpus=2, include_dashboard=False, logging_level="ERROR", log_to_driver=False)
space = config().rehearsal(real_ratio=tune.grid_search([1.0, 0.2]))
results = tune.Tuner(
    space.algo_class,
    param_space=space,
    run_config=tune.RunConfig(stop={"training_iteration": 2}, verbose=0),
).fit()
assert not results.errors, results.errors
opened = sorted(float(r.metrics["rehearsal"]["open"]) for r in results)
assert opened == [0.0, 1.0], opened
print("done")
"""


@pytest.mark.slow
@pytest.mark.parametrize("script", [CLUSTER, TUNE], ids=["two nodes", "tune"])
def test_runs_and_rehearses(script, tmp_path):
    code = textwrap.dedent(QUIET + script)
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=500, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.strip().endswith("done")
