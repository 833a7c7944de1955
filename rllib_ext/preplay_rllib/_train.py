"""A rehearsal run as a folder: configuration, curve, checkpoints, TensorBoard, film strip and page; resumable.

The curve is a CSV with one row per training step. A checkpoint is renamed into place when it is whole, and the CSV is
cut back to it on resume, so a kill at any time costs the steps since the last checkpoint and nothing else.
"""

import json
import logging
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from preplay.errors import PreplayError
from preplay.stage import connect
from preplay_rllib._curve import Curve, Point
from preplay_rllib._film import film_episode, write_gif, write_strip
from preplay_rllib._minigrid import OPTIMAL_RETURN, MiniGrid
from preplay_rllib._off_policy import RehearsalDQNConfig, RehearsalSACConfig
from preplay_rllib._page import GIF, STRIP, write_page
from preplay_rllib._ppo import RehearsalPPOConfig
from preplay_rllib._recent import Recent
from preplay_rllib._run_config import RehearsalRun, RehearsalRunConfig

CONFIG, CHECKPOINTS = "config.json", "checkpoints"
_KEEP = 2
_WINDOW = 50
_FILM_STEPS = 60
_OFF_POLICY_STEPS = 512
_CONFIGS = {"ppo": RehearsalPPOConfig, "dqn": RehearsalDQNConfig, "sac": RehearsalSACConfig}


def algorithm_config(config: RehearsalRunConfig) -> Any:
    """The AlgorithmConfig of a run."""
    made = _CONFIGS[config.algorithm]()
    if config.grid:
        made.environment(MiniGrid, env_config={"id": config.task}).rehearsal(world_model="grid")
    elif config.frames > 1:
        made.environment(Recent, env_config={"id": config.task, "frames": config.frames})
        made.rehearsal(world_model="latent", needs_success=False, bonus=0.0)
    else:
        made.environment(config.task).rehearsal(world_model="vector", needs_success=False, bonus=0.0)
    return (
        made.training(**config.training)
        .rehearsal(**config.rehearsal)
        .debugging(seed=config.seed, log_level="ERROR")
        .env_runners(num_env_runners=config.env_runners)
        .learners(num_learners=config.learners)
        .reporting(
            metrics_num_episodes_for_smoothing=_WINDOW,
            min_time_s_per_iteration=0,
            min_sample_timesteps_per_iteration=0 if config.algorithm == "ppo" else _OFF_POLICY_STEPS,
        )
    )


def train_rehearsal(
    config: RehearsalRunConfig,
    out: Path,
    *,
    resume: bool = False,
    on_point: Callable[[Point], None] = lambda point: None,
) -> RehearsalRun:
    """Train until ``config.real_steps``, keeping everything in ``out``.

    Args:
        resume: Go on from the newest checkpoint in ``out``, if there is one; the curve is the uninterrupted one's.
        on_point: Called after each training step.
    """
    _begin_folder(config, out, resume)
    logging.getLogger("ray").setLevel(logging.ERROR)
    connect()
    algorithm = algorithm_config(config).build_algo()
    if len(algorithm.env_runner.module.observation_space.shape) == 1:
        torch.set_num_threads(1)  # small networks: two threads gain nothing, and on a busy machine lose much
    try:
        curve = _restore(algorithm, out) if resume else Curve(out, [])
        with curve:
            while not curve.points or curve.points[-1].real_steps < config.real_steps:
                curve.add(Point.of(algorithm.train()))
                on_point(curve.points[-1])
                if len(curve.points) % config.checkpoint_every == 0:
                    _save(algorithm, out, len(curve.points))
        _save(algorithm, out, len(curve.points))
        if config.grid:
            _film(algorithm, config, out)
    finally:
        algorithm.stop()
    run = RehearsalRun(out, curve.points, reached(curve.points, config.task))
    write_page(config, run)
    return run


def _film(algorithm: Any, config: RehearsalRunConfig, out: Path) -> None:
    film = film_episode(algorithm, {"id": config.task}, config.seed, _FILM_STEPS)
    write_strip(film, out / STRIP)
    write_gif(film, out / GIF)


def reached(points: list[Point], task: str) -> int | None:
    """Real steps to 0.9 of the optimal return, where the optimum is known."""
    if task not in OPTIMAL_RETURN:
        return None
    goal = 0.9 * OPTIMAL_RETURN[task]
    return next(
        (p.real_steps for p in points if p.episode_return is not None and p.episode_return >= goal), None
    )


def newest_checkpoint(out: Path) -> Path | None:
    """The newest whole checkpoint of a run."""
    done = sorted((out / CHECKPOINTS).glob("step-*"), key=lambda p: int(p.name.removeprefix("step-")))
    return done[-1] if done else None


def _begin_folder(config: RehearsalRunConfig, out: Path, resume: bool) -> None:
    file = out / CONFIG
    if resume and file.exists():
        before = json.loads(file.read_text())
        changed = sorted(
            k
            for k, v in json.loads(config.model_dump_json()).items()
            if before.get(k) != v and k != "real_steps"
        )
        if changed:
            raise PreplayError(
                f"the run there was begun with another {', '.join(changed)}.",
                where=str(out),
                fix="Resume with the same configuration (real_steps may grow), or choose another folder.",
            )
    elif file.exists() and not resume:
        raise PreplayError("there is a run already.", where=str(out), fix="Use --resume, or another folder.")
    out.mkdir(parents=True, exist_ok=True)
    file.write_text(config.model_dump_json(indent=2) + "\n")


def _save(algorithm: Any, out: Path, step: int) -> None:
    """Write a checkpoint, then begin new episodes, as a run resumed from it will."""
    folder = out / CHECKPOINTS
    target, stage = folder / f"step-{step}", folder / "part"
    if target.exists():
        return
    shutil.rmtree(stage, ignore_errors=True)
    algorithm.save_to_path(stage.absolute())
    stage.rename(target)
    for old in sorted(folder.glob("step-*"), key=lambda p: int(p.name.removeprefix("step-")))[:-_KEEP]:
        shutil.rmtree(old)
    algorithm.restart_episodes()


def _restore(algorithm: Any, out: Path) -> Curve:
    checkpoint = newest_checkpoint(out)
    if checkpoint is None:
        return Curve(out, [])
    algorithm.restore_from_path(checkpoint.absolute())
    algorithm.restart_episodes()
    return Curve(out, Curve.read(out)[: int(checkpoint.name.removeprefix("step-"))])
