"""Runs inside RLlib's own environment: times its estimators on arrays from a file, prints JSON.

The target's probabilities are handed over ready made: no time of a policy's forward pass is counted.
"""

import json
import resource
import sys
import time

import numpy as np
from ray.rllib.offline.estimators import ImportanceSampling, WeightedImportanceSampling
from ray.rllib.policy.sample_batch import SampleBatch


def given(base: type) -> type:
    """The estimator, with the target's probabilities taken from the batch."""

    class Given(base):
        def __init__(self, gamma: float):
            self.gamma = gamma

        def compute_action_probs(self, batch):
            return batch["new_prob"]

    return Given


def main() -> None:
    data = dict(np.load(sys.argv[1]))
    steps = int(data["steps"])
    rows = int(data["rllib_sessions"]) * steps
    batch = SampleBatch(
        rewards=data["reward"][:rows],
        action_prob=data["pscore"][:rows],
        new_prob=data["target"][np.arange(rows), data["action"][:rows]],
        eps_id=np.repeat(np.arange(rows // steps), steps),
    )
    result = {}
    for name, base in (("pdis", ImportanceSampling), ("wpdis", WeightedImportanceSampling)):
        started = time.perf_counter()
        result[f"value {name}"] = float(given(base)(float(data["gamma"])).estimate(batch)["v_target"])
        result[f"seconds {name}"] = time.perf_counter() - started
    result["peak MB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps(result))


if __name__ == "__main__":
    main()
