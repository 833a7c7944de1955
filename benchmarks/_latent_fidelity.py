"""Fidelity of the models of vectors and images, trained on the same recorded steps and compared on unseen episodes.

``python -m benchmarks._latent_fidelity --task StatelessCartPole-v1 --models vector latent no-memory --seeds 0:3``
"""

import argparse
import json
import logging
import time
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from ray.rllib.env.single_agent_episode import SingleAgentEpisode

from benchmarks._rehearsal_cells import MEMORY_TASK
from preplay_rllib import Recent, RehearsalPPOConfig
from preplay_rllib._model import EnsembleModule
from preplay_rllib._replay import Columns, Replay

IMAGE_TASK = "preplay-Picture-v0"
STEPS, UNSEEN, ROUND, EPISODE = 4096, (3000, 1_000_000), 512, 120
HORIZONS = (1, 5, 10)
CPU = torch.device("cpu")
LATENT = {"world_model": "latent", "model_batch_size": 32}
MODELS: dict[str, dict[str, Any]] = {
    "vector": {"world_model": "vector"},
    "latent": LATENT,
    "no-memory": LATENT | {"memory": False},
    "one-step": LATENT | {"model_open_loop": 1},
    "transformer": LATENT | {"model_memory": "transformer"},
    "longer": LATENT | {"model_batch_size": 16, "model_updates": 160, "model_lr": 3e-3},
    "chance": LATENT | {"model_latent": 8},
}
"""``one-step`` never predicts from predictions in training; ``longer`` takes four times the steps of half the size,
three times as far, which networks that see need."""


def picture_task(**options: Any) -> gym.Env:
    """The agent's view of an empty room, 28 x 28 pixels."""
    from minigrid.wrappers import ImgObsWrapper, RGBImgPartialObsWrapper

    return ImgObsWrapper(RGBImgPartialObsWrapper(gym.make("MiniGrid-Empty-5x5-v0", **options), tile_size=4))


gym.register(IMAGE_TASK, entry_point=picture_task)


def fidelity(task: str, model: str, seed: int) -> dict[str, float]:
    """Errors k open-loop steps on (``error_k``: root mean square, in units of the change in one step), precision and
    recall of single-step ends, and CPU-seconds of training per 512 real steps."""
    config = RehearsalPPOConfig().rehearsal(**MODELS[model])
    known, unseen = (config.make_tracker().track(recorded(task, *part)) for part in ((STEPS, 0), UNSEEN))
    started = time.process_time()
    module = trained(config, known, task, seed)
    spent = (time.process_time() - started) / len(known["episode"]) * ROUND
    rows = _replay(config, unseen).newest(len(unseen["episode"]))
    return _errors(module, rows) | _ends(module, rows) | {"cpu_seconds": spent}


def recorded(task: str, steps: int, first_seed: int) -> list[SingleAgentEpisode]:
    """Episodes of at least so many steps."""
    episodes: list[SingleAgentEpisode] = []
    while sum(map(len, episodes)) < steps:
        episodes.append(played(task, first_seed + len(episodes)))
    return episodes


def played(task: str, seed: int) -> SingleAgentEpisode:
    """One episode, cut after 120 steps: CartPole balanced with a share of random actions, MiniGrid at random."""
    env = Recent({"id": task})
    rng, episode = np.random.default_rng(seed), SingleAgentEpisode(len_lookback_buffer=0)
    episode.add_env_reset(env.reset(seed=seed)[0])
    careless = rng.uniform(0.1, 1.0)
    while not episode.is_done and len(episode) < EPISODE:
        action = int(rng.integers(env.action_space.n))  # type: ignore[attr-defined]
        if task != IMAGE_TASK and rng.random() > careless:
            action = int(np.dot([0.1, 0.3, 3.0, 1.0], env.unwrapped.state) > 0)  # type: ignore[attr-defined]
        after, reward, terminated, truncated, _ = env.step(action)
        episode.add_env_step(after, action, reward, terminated=terminated, truncated=truncated)
    return episode.to_numpy()


def trained(config: RehearsalPPOConfig, rows: Columns, task: str, seed: int) -> EnsembleModule:
    """As the algorithms train it: round after round on all that was seen so far."""
    settings, env = config.rehearsal_settings, Recent({"id": task})
    torch.manual_seed(seed)
    module = config._model_class()(
        observation_space=env.observation_space,
        action_space=env.action_space,
        model_config=config._world_model_config(),
        learner_only=True,
    )
    replay, rng = _replay(config, None), np.random.default_rng(seed)
    optimizer, size = torch.optim.Adam(module.parameters(), settings.model_lr), settings.model_batch_size
    for first in range(0, len(rows["episode"]), ROUND):
        replay.add({name: values[first : first + ROUND] for name, values in rows.items()})
        module.fit_scales(replay.sample_alone(2048, rng))
        for _ in range(settings.model_updates):
            batch = replay.sample(size, settings.success_share, rng)
            loss = module.ensemble_loss({name: torch.as_tensor(values) for name, values in batch.items()})
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return module


def _replay(config: RehearsalPPOConfig, rows: Columns | None) -> Replay:
    settings = config.rehearsal_settings
    context = settings.model_context if settings.world_model == "latent" else 0
    replay = Replay(settings.replay_capacity, settings.model_members, 0, context)
    if rows is not None:
        replay.add(rows)
    return replay


@torch.no_grad()
def _errors(module: EnsembleModule, rows: Columns) -> dict[str, float]:
    """Of stretches within an episode; pictures: every third of them."""
    after, before = rows["next"].astype(np.float32), rows["observation"].astype(np.float32)
    picture = after.ndim == 4
    unit = (after - before).std(None if picture else 0)
    result, every, white = {}, 3 if picture else 1, 255 if picture else 1
    for k in HORIZONS:
        first = np.arange(len(after) - k + 1)
        first = first[rows["episode"][first] == rows["episode"][first + k - 1]][::every]
        state = module.states({name: values[first] for name, values in rows.items()}, CPU)
        for i in range(k):
            state = module.step(state, torch.as_tensor(rows["action"][first + i]), None).state
        wrong = (module.observe(state).numpy() * white - after[first + k - 1]) / unit
        result[f"error_{k}"] = float(np.sqrt((wrong**2).mean()))
    return result


@torch.no_grad()
def _ends(module: EnsembleModule, rows: Columns) -> dict[str, float]:
    step = module.step(module.states(rows, CPU), torch.as_tensor(rows["action"]), None)
    said, true = step.terminated.numpy(), rows["terminated"]
    hits = float((said & true).sum())
    return {"precision": hits / max(1, said.sum()), "recall": hits / max(1, true.sum())}


def main() -> None:
    parser = argparse.ArgumentParser(description="Fidelity of models of vectors and images.")
    parser.add_argument("--task", choices=["CartPole-v1", MEMORY_TASK, IMAGE_TASK], required=True)
    parser.add_argument("--models", nargs="+", choices=MODELS, required=True)
    parser.add_argument("--seeds", default="0:3", help="first:last+1")
    args = parser.parse_args()
    torch.set_num_threads(1)
    logging.disable(logging.WARNING)
    for model in args.models:
        for seed in range(*map(int, args.seeds.split(":"))):
            figures = {k: round(v, 3) for k, v in fidelity(args.task, model, seed).items()}
            print(args.task, model, seed, json.dumps(figures), flush=True)


if __name__ == "__main__":
    main()
