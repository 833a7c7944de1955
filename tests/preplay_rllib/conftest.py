"""RLlib inside the suite's Ray; small runs that several tests look at."""

import logging

import pytest

from preplay_rllib import MiniGrid, RehearsalPPOConfig


@pytest.fixture(autouse=True)
def quiet_rllib():
    logging.getLogger("ray").setLevel(logging.ERROR)


@pytest.fixture
def ppo_config():
    """PPO with rehearsal on the smallest room, ready to be changed."""

    def make(task: str = "MiniGrid-Empty-5x5-v0", seed: int = 0, **rehearsal):
        return (
            RehearsalPPOConfig()
            .environment(MiniGrid, env_config={"id": task})
            .debugging(seed=seed, log_level="ERROR")
            .rehearsal(**({"rounds": 2, "more_rounds": 0, "real_ratio": 0.1} | rehearsal))
            .reporting(min_time_s_per_iteration=0, min_sample_timesteps_per_iteration=0)
        )

    return make


@pytest.fixture(scope="session")
def trained_world(ray2):
    """An algorithm with a world model of DoorKey-5x5 trained on random play of 3000 steps, policy untouched."""
    config = (
        RehearsalPPOConfig()
        .environment(MiniGrid, env_config={"id": "MiniGrid-DoorKey-5x5-v0"})
        .debugging(seed=5, log_level="ERROR")
        .training(lr=0.0, num_epochs=1)
        .rehearsal(real_ratio=1.0, uniform_mix=0.9, model_updates=150)
        .reporting(min_time_s_per_iteration=0, min_sample_timesteps_per_iteration=0)
    )
    algorithm = config.build_algo()
    for _ in range(6):
        algorithm.train()
    yield algorithm
    algorithm.stop()
