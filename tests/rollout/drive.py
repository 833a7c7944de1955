"""Rollouts on the ring, in small slow blocks; as a script a driver of its own, to be killed."""

import sys
from pathlib import Path

import ray

from preplay.rollout import RolloutConfig, RolloutResult, run_rollouts

from .ring import Ring, Walker, coin, encoder, gamble, starts

CONFIG = RolloutConfig(rollouts=10, block_size=20, gamma=0.5)
BLOCKS = 2 * 2 * 3  # policies x members x (6 initial states x 10 / 20)


def load_ring(uri: str) -> Ring:
    """Member "ring:3" has horizon 3."""
    return Ring(horizon=int(uri.removeprefix("ring:")))


def drive(folder: Path, *, actors: int, delay_s: float = 0.0) -> dict[str, RolloutResult]:
    policies = {
        "gamble": Walker(gamble, name="gambler", delay_s=delay_s),
        "coin": Walker(coin, name="tosser", deterministic=False, reads=2, delay_s=delay_s),
    }
    return run_rollouts(
        ["ring:3", "ring:5"],
        policies,
        starts([0, 1, 2, 3, 4, 0]),
        CONFIG,
        folder,
        load_model=load_ring,
        encoder=encoder(),
        model_keys=["ring:3", "ring:5"],
        actors=actors,
    )


if __name__ == "__main__":
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=100 * 2**20)
    drive(Path(sys.argv[1]), actors=1, delay_s=0.1)
