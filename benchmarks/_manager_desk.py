"""Deciding now on the support desk: a world model learned from logs against the policies that wrote them.

Everything is learned from the logs; the true environment only executes what was decided. PREPLAY_DEMO names a
folder of ``preplay demo``, whose embedded logs and first world model are then used instead of new ones.
"""

import os
import tempfile
import time
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
    AtKeyDecisions,
    DecideNow,
    EachActionThen,
    EveryNSteps,
    Horizon,
    ImaginedPolicy,
    LoggedPolicy,
    PolicyBranches,
    Proposer,
    Rehearsal,
    RehearsalManager,
    TextActor,
    TextWorld,
    Trigger,
    WhenUncertain,
    draw_by,
    fit_logged_policy,
)
from preplay.stage import connect
from preplay.world_model import OptimiserConfig, WorldModelConfig, load_world_model, train_ensemble

CHOICES = 24
PRESETS = {
    "debug": {"sessions": 200, "steps": 200, "played": 40, "particles": 2},
    "full": {"sessions": 1000, "steps": 1000, "played": 150, "particles": 6},
}


@dataclass(frozen=True)
class Desk:
    """What was learned from the logs."""

    world: TextWorld
    encoder: CachedEncoder
    prior: LoggedPolicy
    particles: int

    @property
    def base(self) -> ImaginedPolicy:
        """Draws as the logs' agents did."""
        return draw_by(self.prior)

    def torn(self, observation: np.ndarray) -> np.ndarray:
        """Key decisions: where no choice of the logs' agents has more than .3, bool [B]."""
        return self.prior(observation).max(1) < 0.3


def desk_results(preset: str) -> dict[str, float]:
    """Executed value of every arm on the same customers, its standard error, and what imagining cost."""
    torch.set_num_threads(1)
    settings = PRESETS[preset]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(os.environ.get("PREPLAY_DEMO") or name)
        model = folder / "models" / "member-0" if folder != Path(name) else _train(folder, settings)
        desk = _learn(folder, model, settings["particles"])
    environment = get_environment("support_desk")
    known = environment.policies()
    arms: dict[str, Policy] = {n: known[n] for n in ("apprentice", "by_the_book", "expert")}
    arms |= _actors(desk)
    results, returns = {}, {}
    for arm, policy in arms.items():
        started = time.process_time()
        returns[arm] = environment.play(policy, settings["played"], 7, environment.gamma).returns
        results[f"desk: {arm}"] = float(returns[arm].mean())
        results[f"desk: {arm}, standard error"] = _error(returns[arm])
        results[f"desk: {arm}, CPU seconds"] = time.process_time() - started
        print(f"desk: {arm}: {returns[arm].mean():+.3f} +- {_error(returns[arm]):.3f}", flush=True)
    better = max(("apprentice", "by_the_book"), key=lambda arm: returns[arm].mean())
    for arm in arms:
        if arm.startswith("rehearsed"):
            gain = returns[arm] - returns[better]  # the same customers
            results[f"desk: {arm} over the better logger"] = float(gain.mean())
            results[f"desk: {arm} over the better logger, standard error"] = _error(gain)
    return results


def _train(folder: Path, settings: dict[str, int]) -> Path:
    connect()
    write_logs(folder / "dataset", sessions=settings["sessions"], seed=1)
    embed_dataset(folder / "dataset", folder / "embedded", cache_dir=folder / "cache")
    optimiser = OptimiserConfig(steps=settings["steps"])
    config = WorldModelConfig(optimiser=optimiser)
    return train_ensemble(folder / "embedded", folder / "models", config, members=1, seed=0)[0]


def _learn(folder: Path, model: Path, particles: int) -> Desk:
    turns = load_embedded(folder / "embedded")
    world = TextWorld(load_world_model(model), ActionChoices.clustered(turns, CHOICES, seed=0))
    resolved = encoder_config(open_artifact(folder / "embedded", "embedded"))
    encoder = CachedEncoder(resolved, turns.bank, expect=turns.fingerprint)
    return Desk(world, encoder, fit_logged_policy(world, turns, seed=0), particles)


def _actors(desk: Desk) -> dict[str, Policy]:
    clone = TextActor(
        "clone",
        desk.world,
        desk.encoder,
        lambda state, uniform: desk.base(desk.world.observe(state), uniform),
    )
    likely = EachActionThen(desk.base, desk.prior, most=4)
    return {
        "clone of the logs": clone,
        "rehearsed, 4 likely replies then the clone": _rehearsed(desk, likely),
        "rehearsed, 8 likely replies then the clone": _rehearsed(
            desk, EachActionThen(desk.base, desk.prior, most=8)
        ),
        "rehearsed, 4 likely, horizon 3": _rehearsed(desk, likely, steps=3),
        "rehearsed, 4 likely, caution .1": _rehearsed(desk, likely, caution=0.1),
        "rehearsed, 4 likely, only when uncertain": _rehearsed(desk, likely, trigger=WhenUncertain(1.0)),
        "rehearsed, 4 likely, only at key decisions": _rehearsed(
            desk, likely, trigger=AtKeyDecisions(desk.torn)
        ),
        "rehearsed, best of 8 clone sessions": _rehearsed(desk, PolicyBranches(desk.base, 8)),
        "rehearsed, all 24 replies then the clone": _rehearsed(desk, EachActionThen(desk.base)),
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
