"""Runs inside SCOPE-RL's own environment: times its estimators on arrays from a file, prints JSON."""

import json
import resource
import sys
import time

import numpy as np
from scope_rl.ope import discrete  # pyright: ignore[reportMissingImports]
from scope_rl.utils import estimate_confidence_interval_by_bootstrap  # pyright: ignore[reportMissingImports]

NAMES = {
    "dm": "DirectMethod",
    "is": "TrajectoryWiseImportanceSampling",
    "wis": "SelfNormalizedTIS",
    "pdis": "PerDecisionImportanceSampling",
    "wpdis": "SelfNormalizedPDIS",
    "dr": "DoublyRobust",
    "wdr": "SelfNormalizedDR",
}


def main() -> None:
    data = dict(np.load(sys.argv[1]))
    steps, resamples = int(data.pop("steps")), int(data.pop("resamples"))
    inputs = {
        "step_per_trajectory": steps,
        "action": data["action"],
        "reward": data["reward"],
        "pscore": data["pscore"],
        "evaluation_policy_action_dist": data["target"],
        "state_action_value_prediction": data["q"],
        "initial_state_value_prediction": data["v"].reshape(-1, steps)[:, 0],
        "gamma": float(data["gamma"]),
    }
    result: dict[str, float] = {}
    for name, class_name in NAMES.items():
        estimator = getattr(discrete, class_name)()
        times = []
        for _ in range(3):
            started = time.perf_counter()
            result[f"value {name}"] = float(estimator.estimate_policy_value(**inputs))
            times.append(time.perf_counter() - started)
        result[f"seconds {name}"] = min(times)
    returns = data["reward"].reshape(-1, steps).sum(1)
    started = time.perf_counter()
    estimate_confidence_interval_by_bootstrap(returns, n_bootstrap_samples=resamples, random_state=0)
    result["seconds bootstrap"] = time.perf_counter() - started
    result["peak MB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps(result))


if __name__ == "__main__":
    main()
