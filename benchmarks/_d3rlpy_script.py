"""Runs inside an environment with d3rlpy: fitted Q evaluation of a greedy policy on a toy, prints JSON.

Three steps, two actions, reward = action, discount .9. The greedy policy is that of a DQN trained on the same data.
"""

import json
import sys

import d3rlpy  # pyright: ignore[reportMissingImports]
import numpy as np


def main() -> None:
    data = dict(np.load(sys.argv[1]))
    d3rlpy.seed(0)
    dataset = d3rlpy.dataset.MDPDataset(
        data["states"],
        data["actions"][:, None],
        data["rewards"][:, None],
        data["terminals"].astype(np.float32),
    )
    quiet = {"show_progress": False, "logger_adapter": d3rlpy.logging.NoopAdapterFactory()}
    dqn = d3rlpy.algos.DQNConfig(gamma=0.9, batch_size=64, target_update_interval=50).create(device=False)
    dqn.fit(dataset, n_steps=1500, n_steps_per_epoch=1500, **quiet)
    config = d3rlpy.ope.FQEConfig(gamma=0.9, learning_rate=1e-3, batch_size=64, target_update_interval=50)
    fqe = d3rlpy.ope.DiscreteFQE(algo=dqn, config=config, device=False)
    fqe.fit(dataset, n_steps=2500, n_steps_per_epoch=2500, **quiet)
    states = data["probe"]
    greedy = dqn.predict(states)
    print(json.dumps({"greedy": greedy.tolist(), "value": fqe.predict_value(states, greedy).tolist()}))


if __name__ == "__main__":
    main()
