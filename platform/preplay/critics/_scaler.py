"""Means and deviations of the training split, kept with the critic."""

from dataclasses import dataclass

import numpy as np
import torch

from preplay.critics._encoder import EncodedPools
from preplay.critics._network import Inputs


@dataclass(frozen=True)
class Scaler:
    """Brings states and features to mean 0 and deviation 1 (of the training split), clipped at 6 deviations."""

    state_mean: np.ndarray
    state_std: np.ndarray
    feature_mean: np.ndarray
    feature_std: np.ndarray

    @classmethod
    def fit(cls, pools: EncodedPools) -> "Scaler":
        """Statistics of these pools and no others."""
        return cls(*_moments(pools.state), *_moments(pools.features))

    def inputs(self, pools: EncodedPools) -> Inputs:
        """One row per candidate, as tensors."""
        owner = pools.owner
        state = _scale(pools.state, self.state_mean, self.state_std)
        features = _scale(pools.features, self.feature_mean, self.feature_std)
        return Inputs(
            state=torch.from_numpy(state[owner]),
            state_embedding=torch.from_numpy(pools.state_embedding[owner]),
            features=torch.from_numpy(features),
            parts=torch.from_numpy(pools.chunks.embeddings[pools.text]),
            exists=torch.from_numpy(pools.chunks.exists[pools.text]),
        )

    def distance(self, pools: EncodedPools) -> np.ndarray:
        """Root mean square of the scaled state features, float64 [N]: about 1 inside the training data."""
        scaled = _scale(pools.state, self.state_mean, self.state_std)
        return np.sqrt((scaled.astype(np.float64) ** 2).mean(axis=1))


def _moments(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    std = values.std(axis=0, dtype=np.float64)
    return values.mean(axis=0, dtype=np.float64).astype(np.float32), np.where(std < 1e-6, 1, std).astype(
        np.float32
    )


def _scale(values: np.ndarray, mean: np.ndarray, std: np.ndarray) -> np.ndarray:
    return np.clip((values - mean) / std, -6, 6).astype(np.float32)
