"""One Ray for the whole suite, quiet and small; set up before anything imports it."""

import os

os.environ.update(
    RAY_USAGE_STATS_ENABLED="0",
    RAY_DEDUP_LOGS="0",
    RAY_ENABLE_UV_RUN_RUNTIME_ENV="0",
    RAY_DATA_DISABLE_PROGRESS_BARS="1",
    RAY_AUTH_MODE="disabled",  # loopback only; a real cluster keeps its token
    OMP_NUM_THREADS="1",
    TOKENIZERS_PARALLELISM="false",
)

import pytest
import torch

torch.set_num_threads(1)


@pytest.fixture(scope="session")
def ray2():
    """A local Ray with two CPUs, shared by the whole suite."""
    import ray

    ray.init(
        address="local",  # never another Ray that happens to run on this machine
        num_cpus=2,
        include_dashboard=False,
        logging_level="ERROR",
        log_to_driver=False,
        object_store_memory=400 * 2**20,
    )
    yield ray
    ray.shutdown()
