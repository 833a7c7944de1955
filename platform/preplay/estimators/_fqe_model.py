"""A fitted Q function of feature vectors.

Shapes: M members, N rows, K sampled actions, DS and DA state and action features.
"""

from dataclasses import dataclass

import numpy as np
import torch

from preplay.estimators._fqe_net import EnsembleMLP, Standardiser


@dataclass(frozen=True)
class FQEModel:
    """A fitted Q function: features in, values out (float64)."""

    net: EnsembleMLP
    inputs: Standardiser
    target_mean: float
    target_scale: float
    bounds: tuple[float, float]
    turn_scale: float | None

    def q_members(self, states: np.ndarray, actions: np.ndarray, turn: np.ndarray) -> np.ndarray:
        """Q of each member, float64 [M, N]; states [N, DS], actions [N, DA], turn [N] (0 at the start)."""
        rows = torch.from_numpy(self.inputs.apply(join_features(states, actions, turn, self.turn_scale)))
        with torch.inference_mode():
            parts = [self.net(part) for part in rows.split(16384)]
        values = torch.cat(parts, 1).double().numpy() * self.target_scale + self.target_mean
        return values.clip(*self.bounds)

    def q(self, states: np.ndarray, actions: np.ndarray, turn: np.ndarray) -> np.ndarray:
        """Mean over the members, float64 [N]."""
        return self.q_members(states, actions, turn).mean(0)

    def v_members(
        self, states: np.ndarray, actions: np.ndarray, turn: np.ndarray, weights: np.ndarray | None = None
    ) -> np.ndarray:
        """V of each member, float64 [M, N], from sampled actions [N, K, DA] and their weights [N, K]."""
        n, k, width = actions.shape
        if n == 0:
            return np.zeros((self.net.weights[0].shape[0], 0))
        values = self.q_members(np.repeat(states, k, 0), actions.reshape(n * k, width), np.repeat(turn, k))
        return np.average(values.reshape(-1, n, k), axis=2, weights=_broadcast(weights, values, n, k))


def join_features(
    states: np.ndarray, actions: np.ndarray, turn: np.ndarray, turn_scale: float | None
) -> np.ndarray:
    """State, action and (unless ``turn_scale`` is None) time fraction side by side, float32 [N, D]."""
    parts = [states, actions]
    if turn_scale is not None:
        parts.append((np.asarray(turn) / turn_scale)[:, None])
    return np.concatenate([p.astype(np.float32) for p in parts], 1)


def _broadcast(weights: np.ndarray | None, values: np.ndarray, n: int, k: int) -> np.ndarray | None:
    return None if weights is None else np.broadcast_to(weights, (len(values), n, k))
