"""Re-injected states: how far a linear model of a nonlinear world drifts in thirty steps, with and without.

The world is a point that is turned on the unit circle; the model is fitted by least squares to 300 noisy steps.
"""

from dataclasses import dataclass

import numpy as np
import torch
from gymnasium.spaces import Box
from torch import Tensor

from preplay.rehearsal import DynamicsWorld, Luck, NearestReal, RandomActions, imagine
from preplay.seeding import numpy_rng

STEPS, BRANCHES, REAL = 30, 200, 300


@dataclass(frozen=True)
class Linear:
    """next = [x, y, a, a x, a y, 1] @ weights."""

    weights: np.ndarray
    noise_dim: int = 0

    def step(self, condition: Tensor, noise: Tensor) -> Tensor:
        """float32 [B, 2] from [B, 1, 3]."""
        row = condition[:, 0].double().numpy()
        return torch.from_numpy(_terms(row[:, :2], row[:, 2:]) @ self.weights).float()


def drift_results(seeds: range) -> dict[str, float]:
    """Mean distance of imagined from true states and from the circle after thirty steps of the same actions."""
    results = {}
    for every in (0, 10, 3, 1):
        runs = np.array([_drift(every, seed) for seed in seeds])
        name = f"drift: re-injected every {every}" if every else "drift: never re-injected"
        results[f"{name}, distance from the truth"] = float(runs[:, 0].mean())
        results[f"{name}, distance from real states"] = float(runs[:, 1].mean())
    return results


def _drift(every: int, seed: int) -> tuple[float, float]:
    rng = numpy_rng(seed, "turns")
    angle, action = rng.uniform(0, 2 * np.pi, REAL), rng.uniform(-1, 1, (REAL, 1))
    real, after = _point(angle), _point(angle + 0.3 + 0.5 * action[:, 0])
    noisy = after + 0.02 * rng.standard_normal(after.shape)
    weights = np.linalg.lstsq(_terms(real, action), noisy, rcond=None)[0]
    world = DynamicsWorld(Linear(weights), _nothing, latent=2, actions=Box(-1, 1, (1,)))
    bring_back = NearestReal.among(world.start(real.astype(np.float32)), world.observe)
    begin = rng.uniform(0, 2 * np.pi, BRANCHES)
    branches = imagine(
        world,
        world.start(_point(begin).astype(np.float32)),
        RandomActions(),
        steps=STEPS,
        luck=Luck(seed, np.arange(BRANCHES)),
        reinject=bring_back,
        reinject_every=every,
    )
    turned = begin + np.bincount(branches.branch, 0.3 + 0.5 * branches.action[:, 0])
    last = world.observe(branches.next_state[branches.last])
    off = np.abs(np.linalg.norm(last, axis=1) - 1)
    return float(np.linalg.norm(last - _point(turned), axis=1).mean()), float(off.mean())


def _point(angle: np.ndarray) -> np.ndarray:
    return np.stack([np.cos(angle), np.sin(angle)], 1)


def _terms(state: np.ndarray, action: np.ndarray) -> np.ndarray:
    return np.concatenate([state, action, action * state, np.ones((len(state), 1))], 1)


def _nothing(condition: Tensor, latent: Tensor) -> tuple[Tensor, Tensor]:
    return torch.zeros(len(latent)), torch.zeros(len(latent))
