"""Fidelity of the MiniGrid world model: open-loop steps that are exactly the simulator's, and its successes."""

from typing import Any

import numpy as np
import torch
from ray.rllib.env.single_agent_episode import SingleAgentEpisode

from benchmarks._rehearsal_cells import ARMS, algorithm_for
from preplay_rllib import GridTracker, MiniGrid, flatten

HORIZONS = (1, 5, 10)
REAL_STEPS = 4096
EPISODES, FIRST_SEED = 60, 2_000_000
PLAYED = 60


def fidelity(task: str, arm: str = "rehearsal", seed: int = 0) -> dict[str, float]:
    """Train for 4096 real steps, then compare on unseen episodes of the final policy.

    Returns ``exact_k`` (share of views that are right k steps after a known belief), ``precision`` and ``recall`` of
    predicted successes over single steps.
    """
    algorithm = algorithm_for(task, ARMS[arm](), seed)
    try:
        steps = 0
        while steps < REAL_STEPS:
            steps = int(algorithm.train()["env_runners"]["num_env_steps_sampled_lifetime"])
        model = algorithm.learner_group._learner.module["world_model"].unwrapped()
        return compare(model, [_episode(algorithm, task, i) for i in range(EPISODES)])
    finally:
        algorithm.stop()


@torch.no_grad()
def compare(model: Any, episodes: list[SingleAgentEpisode]) -> dict[str, float]:
    """The figures on recorded episodes."""
    rows = GridTracker().track(episodes)
    cpu = torch.device("cpu")
    step = model.step(model.states(rows, cpu), torch.as_tensor(rows["action"]), None)
    said, true = step.success.numpy(), rows["success"]
    hits = float((said & true).sum())
    result = {"precision": hits / max(1, said.sum()), "recall": hits / max(1, true.sum())}
    return {f"exact_{k}": _exact(model, rows, k) for k in HORIZONS} | result


def _exact(model: Any, rows: dict[str, np.ndarray], k: int) -> float:
    """Of all stretches of k steps within an episode."""
    count = len(rows["episode"])
    first = np.arange(count - k + 1)
    first = first[rows["episode"][first] == rows["episode"][first + k - 1]]
    state = model.states({name: values[first] for name, values in rows.items()}, torch.device("cpu"))
    for i in range(k):
        state = model.step(state, torch.as_tensor(rows["action"][first + i]), None).state
    return float((model.observe(state).numpy() == flatten(rows["view"][first + k - 1])).all(1).mean())


@torch.no_grad()
def _episode(algorithm: Any, task: str, index: int) -> SingleAgentEpisode:
    """An unseen episode under the final policy, cut after 60 steps."""
    env, module = MiniGrid({"id": task}), algorithm.env_runner.module
    observation, _ = env.reset(seed=FIRST_SEED + index)
    episode = SingleAgentEpisode(len_lookback_buffer=0)
    episode.add_env_reset(observation)
    for _ in range(PLAYED):
        logits = module.forward_exploration({"obs": torch.as_tensor(observation)[None]})["action_dist_inputs"]
        action = int(torch.distributions.Categorical(logits=logits).sample())
        observation, reward, terminated, truncated, _ = env.step(action)
        episode.add_env_step(observation, action, reward, terminated=terminated, truncated=truncated)
        if terminated or truncated:
            break
    return episode.to_numpy()
