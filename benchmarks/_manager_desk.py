"""Deciding now on the support desk: a world model learned from logs against the policies that wrote them.

Everything is learned from the logs; the true environment only executes what was decided.
"""

import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from preplay.artifacts import open_artifact
from preplay.embedding import CachedEncoder, embed_dataset, encoder_config, load_embedded
from preplay.environments import get_environment
from preplay.pipeline import write_logs
from preplay.policies import Policy
from preplay.rehearsal import (
    ActionChoices,
    Aim,
    DecideNow,
    EachActionThen,
    EveryNSteps,
    Horizon,
    ImaginedPolicy,
    PolicyBranches,
    Proposer,
    Rehearsal,
    RehearsalManager,
    TextActor,
    TextWorld,
    Trigger,
    draw_by,
    fit_logged_policy,
)
from preplay.stage import connect
from preplay.world_model import OptimiserConfig, WorldModelConfig, load_world_model, train_ensemble

CHOICES = 24
PRESETS = {
    "debug": {"sessions": 200, "steps": 200, "played": 60, "particles": 3},
    "full": {"sessions": 2000, "steps": 1000, "played": 400, "particles": 8},
}


@dataclass(frozen=True)
class Desk:
    """What was learned from the logs."""

    world: TextWorld
    encoder: CachedEncoder
    base: ImaginedPolicy
    particles: int


def desk_results(preset: str) -> dict[str, float]:
    """Executed value of every arm on the same customers, its standard error, and what imagining cost."""
    torch.set_num_threads(1)
    connect()
    settings = PRESETS[preset]
    with tempfile.TemporaryDirectory() as name:
        desk = _learn(Path(name), settings)
    environment = get_environment("support_desk")
    known = environment.policies()
    arms: dict[str, Policy] = {n: known[n] for n in ("apprentice", "by_the_book", "expert")}
    arms |= _actors(desk)
    results, returns = {}, {}
    for arm, policy in arms.items():
        returns[arm] = environment.play(policy, settings["played"], 7, environment.gamma).returns
        results[f"desk: {arm}"] = float(returns[arm].mean())
        results[f"desk: {arm}, standard error"] = _error(returns[arm])
        print(f"desk: {arm}: {returns[arm].mean():+.3f} +- {_error(returns[arm]):.3f}", flush=True)
    for arm in arms:
        if arm.startswith("rehearsed"):
            gain = returns[arm] - returns["clone of the logs"]
            results[f"desk: {arm} over the clone"] = float(gain.mean())
            results[f"desk: {arm} over the clone, standard error"] = _error(gain)
    return results


def _learn(folder: Path, settings: dict[str, int]) -> Desk:
    write_logs(folder / "dataset", sessions=settings["sessions"], seed=1)
    embed_dataset(folder / "dataset", folder / "embedded", cache_dir=folder / "cache")
    optimiser = OptimiserConfig(steps=settings["steps"])
    config = WorldModelConfig(dynamics="flow", sampler_steps=4, optimiser=optimiser)
    (path,) = train_ensemble(folder / "embedded", folder / "models", config, members=1, seed=0)
    turns = load_embedded(folder / "embedded")
    world = TextWorld(load_world_model(path), ActionChoices.clustered(turns, CHOICES, seed=0))
    resolved = encoder_config(open_artifact(folder / "embedded", "embedded"))
    encoder = CachedEncoder(resolved, turns.bank, expect=turns.fingerprint)
    return Desk(world, encoder, draw_by(fit_logged_policy(world, turns)), settings["particles"])


def _actors(desk: Desk) -> dict[str, Policy]:
    clone = TextActor(
        "clone",
        desk.world,
        desk.encoder,
        lambda state, uniform: desk.base(desk.world.observe(state), uniform),
    )
    every = EachActionThen(desk.base)
    return {
        "clone of the logs": clone,
        "rehearsed, each reply then the clone": _rehearsed(desk, every),
        "rehearsed, horizon 3": _rehearsed(desk, every, steps=3),
        "rehearsed, caution .1": _rehearsed(desk, every, caution=0.1),
        "rehearsed, best of 24 clone sessions": _rehearsed(desk, PolicyBranches(desk.base, 24)),
    }


def _rehearsed(
    desk: Desk,
    proposer: Proposer,
    *,
    trigger: Trigger | None = None,
    steps: int | None = None,
    caution: float = 0.0,
) -> TextActor:
    how = Rehearsal(
        proposer,
        trigger=trigger or EveryNSteps(1),
        horizon=Horizon(((0, steps or desk.world.model.horizon),)),
        aim=Aim(gamma=0.97, caution=caution, particles=desk.particles),
    )
    return TextActor(
        "rehearsed", desk.world, desk.encoder, DecideNow(RehearsalManager(desk.world, how, seed=5), desk.base)
    )


def _error(values: np.ndarray) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values)))
