"""One cell of the rehearsal benchmark: a task, an arm and a seed, run to 0.9 of the optimal return and a bit on.

``python -m benchmarks._rehearsal_cells OUT --tasks ... --arms ... --seeds 0:5`` runs cells one after the other and
skips those that are there, so that several processes can share a folder and a kill loses one cell at most.
"""

import argparse
import json
import logging
import time
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import ray
import torch
from ray.rllib.algorithms.algorithm_config import AlgorithmConfig
from ray.rllib.algorithms.dqn import DQNConfig
from ray.rllib.algorithms.dreamerv3 import DreamerV3Config
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.algorithms.sac import SACConfig
from ray.rllib.core import Columns

from benchmarks._rehearsal_replayed import ReplayedPPOConfig
from preplay_rllib import (
    OPTIMAL_RETURN,
    MiniGrid,
    Recent,
    RehearsalDQNConfig,
    RehearsalPPOConfig,
    RehearsalSACConfig,
)

MEMORY_TASK, FRAMES = "StatelessCartPole-v1", 4
"""CartPole without its two velocities; all arms see the four newest observations."""
gym.register(
    MEMORY_TASK,
    entry_point="ray.rllib.examples.envs.classes.stateless_cartpole:StatelessCartPole",
    max_episode_steps=500,
)
OPTIMUM = OPTIMAL_RETURN | {"CartPole-v1": 500.0, MEMORY_TASK: 500.0}
SHARE_OF_OPTIMUM = 0.9
WINDOW = 50
EVALUATION_EPISODES, FIRST_EVALUATION_SEED = 48, 1_000_000
AFTER_REACHED = 2048
LIMITS = {"ppo": 120_000}
LIMIT = 40_000


def ppo() -> AlgorithmConfig:
    """Tuned PPO of RLlib, the first bar: DoorKey-5x5 in 45-56 thousand real steps."""
    return (
        PPOConfig()
        .training(
            train_batch_size_per_learner=2048,
            minibatch_size=256,
            num_epochs=4,
            lr=1e-3,
            gamma=0.99,
            lambda_=0.95,
            entropy_coeff=0.01,
            use_kl_loss=False,
            clip_param=0.2,
            vf_loss_coeff=0.5,
            grad_clip=0.5,
        )
        .env_runners(num_env_runners=0, num_envs_per_env_runner=16)
        .rl_module(
            model_config={"fcnet_hiddens": [64, 64], "fcnet_activation": "tanh", "vf_share_layers": False}
        )
    )


def tune_dqn(config: DQNConfig) -> DQNConfig:
    """One gradient step of 64 rows per 4 real steps; greedier over the first 10 thousand."""
    return config.training(
        lr=5e-4,
        train_batch_size_per_learner=64,
        n_step=1,
        target_network_update_freq=500,
        num_steps_sampled_before_learning_starts=500,
        epsilon=[(0, 1.0), (10_000, 0.02)],
        replay_buffer_config={"type": "PrioritizedEpisodeReplayBuffer", "capacity": 50_000},
    ).env_runners(num_env_runners=0, rollout_fragment_length=4)


def tune_sac(config: SACConfig) -> SACConfig:
    """One gradient step of 128 rows per real step."""
    return config.training(
        actor_lr=1e-3,
        critic_lr=1e-3,
        alpha_lr=1e-3,
        train_batch_size_per_learner=128,
        n_step=1,
        num_steps_sampled_before_learning_starts=500,
    ).env_runners(num_env_runners=0, rollout_fragment_length=1)


def dreamer() -> AlgorithmConfig:
    """RLlib's DreamerV3, smallest size, four times fewer replayed steps per real one than its paper takes."""
    return DreamerV3Config().training(model_size="XS", training_ratio=256).env_runners(num_env_runners=0)


def rehearsal(**options: Any) -> AlgorithmConfig:
    """RehearsalPPO as it comes, with single settings changed for the ablations."""
    return RehearsalPPOConfig().rehearsal(**options)


def matched() -> AlgorithmConfig:
    """The second bar: same collector, bonus and number of gradient steps per real step (on real rows, as many more
    as there are more rounds of rehearsal at this rate of success), no world model."""
    return rehearsal(real_ratio=1.0, model_updates=0)


def matched_fewer() -> AlgorithmConfig:
    """``matched`` with the gradient steps of four rounds, however often it succeeds."""
    return rehearsal(real_ratio=1.0, model_updates=0, more_rounds=0)


ARMS = {
    "ppo": ppo,
    "matched": matched,
    "matched-fewer": matched_fewer,
    "rehearsal": rehearsal,
    "dqn": lambda: tune_dqn(DQNConfig()),
    "rehearsal-dqn": lambda: tune_dqn(RehearsalDQNConfig()),
    "sac": lambda: tune_sac(SACConfig()),
    "rehearsal-sac": lambda: tune_sac(RehearsalSACConfig()),
    "dreamer": dreamer,
}
ABLATIONS = {
    "replayed": ReplayedPPOConfig,
    "placebo": lambda: rehearsal(model_updates=0),
    "placebo-open": lambda: rehearsal(model_updates=0, gates=False),
    "no-gates": lambda: rehearsal(gates=False),
    "no-memory": lambda: rehearsal(memory=False),
    "no-memory-no-gates": lambda: rehearsal(memory=False, gates=False),
    "no-bonus": lambda: rehearsal(bonus=0.0),
    "no-mixing": lambda: rehearsal(uniform_mix=0.0),
    "no-rare-actions": lambda: rehearsal(rare_actions=False),
    "no-more-rounds": lambda: rehearsal(more_rounds=0),
    "no-success-starts": lambda: rehearsal(success_starts=0.0),
}
"""``replayed`` looks at real branches again instead of imagining them, ``placebo`` has an untrained model,
``placebo-open`` no gates either."""
ARMS |= ABLATIONS


def run_cell(task: str, arm: str, seed: int, limit: int) -> dict[str, Any]:
    """Train until the bar is reached, then 2048 steps more.

    The bar is reached when the mean of 48 fresh episodes, each played to its end, is above it; they are played once
    the mean of the last 50 training episodes has come half the way. (That mean itself flatters an agent whose
    failures take longest, and lags behind one that has just learned.)

    Returns ``reached`` (real steps, None if the limit came first), ``steps``, ``final`` (mean of 48 fresh episodes),
    ``cpu_seconds`` until the bar, and the curve of (steps, return, gate open).
    """
    algorithm = algorithm_for(task, ARMS[arm](), seed)
    try:
        return _train(algorithm, task, limit)
    finally:
        algorithm.stop()


def algorithm_for(task: str, config: AlgorithmConfig, seed: int) -> Any:
    """Built for a task, one result per training step."""
    if task.startswith("MiniGrid-"):
        config.environment(MiniGrid, env_config={"id": task})
        if isinstance(config, RehearsalDQNConfig):
            config.rehearsal(world_model="grid", needs_success=True, horizon=5)
    elif task == MEMORY_TASK:
        config.environment(Recent, env_config={"id": task, "frames": FRAMES})
        if isinstance(config, RehearsalPPOConfig):
            config.rehearsal(world_model="latent", model_batch_size=32, needs_success=False, bonus=0.0)
    else:
        config.environment(task)
        if isinstance(config, RehearsalPPOConfig):
            config.rehearsal(world_model="vector", needs_success=False, bonus=0.0)
    config.debugging(seed=seed, log_level="ERROR").reporting(
        metrics_num_episodes_for_smoothing=WINDOW,
        min_time_s_per_iteration=0,
        min_sample_timesteps_per_iteration=512,
    )
    return config.build_algo()


def _train(algorithm: Any, task: str, limit: int) -> dict[str, Any]:
    started, reached, cpu, curve = time.process_time(), None, 0.0, []
    goal, steps = SHARE_OF_OPTIMUM * OPTIMUM[task], 0
    while steps < (limit if reached is None else min(limit, reached + AFTER_REACHED)):
        result = algorithm.train()
        steps = int(result["env_runners"]["num_env_steps_sampled_lifetime"])
        value = float(result["env_runners"].get("episode_return_mean", float("nan")))
        curve.append((steps, value, float(result.get("rehearsal", {}).get("open", 0.0))))
        if reached is None:
            cpu = time.process_time() - started
            reached = steps if value >= goal / 2 and evaluate(algorithm, task) >= goal else None
    final = evaluate(algorithm, task)
    return {"reached": reached, "steps": steps, "final": final, "cpu_seconds": cpu, "curve": curve}


@torch.no_grad()
def evaluate(algorithm: Any, task: str) -> float:
    """Mean return of fresh episodes under the policy that collects experience, each to its own end."""
    envs = [_environment(task) for _ in range(EVALUATION_EPISODES)]
    observations = np.stack([env.reset(seed=FIRST_EVALUATION_SEED + i)[0] for i, env in enumerate(envs)])
    running, total = np.arange(len(envs)), 0.0
    while len(running):
        actions = _act(algorithm.env_runner.module, observations[running])
        going = []
        for index, action in zip(running, actions, strict=True):
            observations[index], reward, terminated, truncated, _ = envs[index].step(int(action))
            total += float(reward)
            going.append(not (terminated or truncated))
        running = running[np.array(going)]
    return total / len(envs)


def _environment(task: str) -> gym.Env[np.ndarray, Any]:
    if task == MEMORY_TASK:
        return Recent({"id": task, "frames": FRAMES})
    return MiniGrid({"id": task}) if task.startswith("MiniGrid-") else gym.make(task)


def _act(module: Any, observations: np.ndarray) -> np.ndarray:
    out = module.forward_exploration({Columns.OBS: torch.as_tensor(observations)}, t=10**9)
    if Columns.ACTIONS in out:
        return out[Columns.ACTIONS].numpy()
    return torch.distributions.Categorical(logits=out[Columns.ACTION_DIST_INPUTS]).sample().numpy()


def cell_file(folder: Path, task: str, arm: str, seed: int) -> Path:
    """Where a cell is kept."""
    return folder / task / f"{arm}-{seed}.json"


def ensure_cell(folder: Path, task: str, arm: str, seed: int, limit: int | None = None) -> dict[str, Any]:
    """The cell, from the folder if it was run before; a run that has not got there by ``limit`` is given up."""
    file = cell_file(folder, task, arm, seed)
    if not file.exists():
        cell = run_cell(task, arm, seed, limit or LIMITS.get(arm, LIMIT))
        file.parent.mkdir(parents=True, exist_ok=True)
        staged = file.with_suffix(".part")
        staged.write_text(json.dumps(cell))
        staged.rename(file)
    return json.loads(file.read_text())


def begin() -> None:
    """One thread, no chatter of RLlib, and a Ray of this process alone: cells must not land on a cluster nearby."""
    torch.set_num_threads(1)
    logging.disable(logging.WARNING)
    ray.init(address="local", num_cpus=1, include_dashboard=False, log_to_driver=False)


def main() -> None:
    parser = argparse.ArgumentParser(description="Run cells of the rehearsal benchmark.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tasks", nargs="+", required=True, metavar="MiniGrid-...-v0 or CartPole-v1")
    parser.add_argument("--arms", nargs="+", required=True, choices=ARMS)
    parser.add_argument("--seeds", default="0:5", help="first:last+1")
    parser.add_argument("--limit", type=int, help="real steps after which a run is given up")
    args = parser.parse_args()
    begin()
    first, stop = map(int, args.seeds.split(":"))
    for seed in range(first, stop):
        for task in args.tasks:
            for arm in args.arms:
                cell = ensure_cell(args.folder, task, arm, seed, args.limit)
                print(task, arm, seed, {k: v for k, v in cell.items() if k != "curve"}, flush=True)


if __name__ == "__main__":
    main()
