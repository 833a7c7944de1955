"""Complete imagined turns (policy, encoder, denoiser, retrieval, outcome) against the bare denoiser.

In one process speeds are per CPU-second, which other work on the machine hardly disturbs; the comparison of one
and two actors is in wall time and needs two idle cores.
"""

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from benchmarks._common import bench_main
from preplay.artifacts import open_artifact
from preplay.embedding import CachedEncoder, EmbeddedTurns, embed_dataset, encoder_config, load_embedded
from preplay.environments import get_environment
from preplay.pipeline import write_logs
from preplay.policies import Policy
from preplay.rollout import Block, InitialStates, RolloutConfig, rollout_block, run_rollouts
from preplay.stage import connect
from preplay.world_model import (
    LatentWorldModel,
    OptimiserConfig,
    WorldModelConfig,
    load_world_model,
    train_ensemble,
)

BATCH = 2500
POLICY = "adaptive"
PRESETS = {
    "debug": {"sessions": 200, "steps": 100, "batches": 3, "blocks": 8},
    "full": {"sessions": 1000, "steps": 1000, "batches": 8, "blocks": 40},
}
GOALS = {
    "overhead over the bare denoiser": "<= 0.4",
    "batch / one session at a time": ">= 50",
    "two actors / one": ">= 1.7 on 2 idle cores",
}


def run(preset: str) -> dict[str, float]:
    """All ratios with a diffusion world model of the support desk."""
    connect()
    torch.set_num_threads(1)
    settings = PRESETS[preset]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model = _train(folder, settings["sessions"], settings["steps"])
        turns = load_embedded(folder / "embedded")
        encoder = _encoder(folder, turns)
        metrics = _single_process(load_world_model(model), encoder, turns, settings["batches"])
        return metrics | _actors(folder, model, encoder, turns, settings["blocks"])


def _train(folder: Path, sessions: int, steps: int) -> Path:
    """A world model; how well it is trained does not matter for its speed."""
    write_logs(folder / "dataset", sessions=sessions, seed=1)
    embed_dataset(folder / "dataset", folder / "embedded", cache_dir=folder / "cache")
    optimiser = OptimiserConfig(steps=steps, warmup=10)
    config = WorldModelConfig(optimiser=optimiser, outcome=optimiser)
    return train_ensemble(folder / "embedded", folder / "models", config, members=1, seed=0)[0]


def _encoder(folder: Path, turns: EmbeddedTurns) -> CachedEncoder:
    """Knows the logged texts and all answers of the policy, as after the first blocks of a run."""
    config = encoder_config(open_artifact(folder / "embedded", "embedded"))
    return CachedEncoder(config, turns.bank, expect=turns.fingerprint)


def _initial(turns: EmbeddedTurns, count: int) -> InitialStates:
    starts = turns.session_starts[:-1]
    return InitialStates.from_turns(turns, starts[np.arange(count) % len(starts)])


def _policy() -> Policy:
    return get_environment("support_desk").target_policies()[POLICY]


def _single_process(
    model: LatentWorldModel, encoder: CachedEncoder, turns: EmbeddedTurns, batches: int
) -> dict[str, float]:
    config = RolloutConfig(rollouts=1, block_size=BATCH, survival_floor=0.0)
    initial, policy = _initial(turns, BATCH), _policy()

    def imagine(index: int, sessions: int) -> int:
        block = Block(index, 0, 0, sessions)
        return rollout_block(model, policy, encoder, initial, config, block).num_rows

    imagine(0, BATCH)  # the encoder meets the policy's answers
    single = max(_rate(lambda i=i: imagine(1000 + i, 1)) for i in range(10))
    bare, complete = [], []
    for i in range(1, batches + 1):  # in turns, so that both meet the same machine; the best of each counts
        bare.append(_rate(lambda: _denoise(model, BATCH, model.horizon)))
        complete.append(_rate(lambda i=i: imagine(i, BATCH)))
    return {
        "bare denoiser, turns/CPU-s": max(bare),
        "complete, turns/CPU-s": max(complete),
        "one session at a time, turns/CPU-s": single,
        "overhead over the bare denoiser": max(bare) / max(complete) - 1,
        "batch / one session at a time": max(complete) / single,
    }


@torch.inference_mode()
def _denoise(model: LatentWorldModel, rows: int, turns: int) -> int:
    condition = torch.randn(rows, model.config.window, model.turn_size)
    for _ in range(turns):
        model.dynamics.step(condition, torch.randn(rows, model.noise_dim))
    return rows * turns


def _rate(work: Callable[[], int]) -> float:
    """Turns per CPU-second of ``work``, which says how many turns it did."""
    started = time.process_time()
    turns = work()
    return turns / (time.process_time() - started)


def _actors(
    folder: Path, model: Path, encoder: CachedEncoder, turns: EmbeddedTurns, blocks: int
) -> dict[str, float]:
    config = RolloutConfig(rollouts=blocks, block_size=BATCH, survival_floor=0.0)
    rates = {}
    for actors in (1, 2):
        output = folder / f"rollouts-{actors}"
        run_rollouts(
            [str(model)],
            {POLICY: _policy()},
            _initial(turns, BATCH),
            config,
            output,
            load_model=load_world_model,
            encoder=encoder,
            actors=actors,
        )
        rates[actors] = _blocks_per_second(output, actors)
    return {"blocks/s with one actor": rates[1], "two actors / one": rates[2] / rates[1]}


def _blocks_per_second(folder: Path, actors: int) -> float:
    """From the files' times, counted after every actor's first block: without the start-up of Ray's processes."""
    times = sorted(path.stat().st_mtime for path in folder.glob("block-*.parquet"))
    return (len(times) - actors) / (times[-1] - times[actors - 1])


if __name__ == "__main__":
    bench_main(run, title="Rollouts", goals=GOALS)
