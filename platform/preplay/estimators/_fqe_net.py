"""An ensemble of small networks that runs as one: every layer is one batched product over the members.

Shapes: M members, N rows, D inputs, U hidden units.
"""

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn


class EnsembleMLP(nn.Module):
    """M independent networks with two hidden layers; [M, N, D] or [N, D] in, [M, N] out."""

    def __init__(self, members: int, inputs: int, hidden: int, generator: torch.Generator):
        super().__init__()
        sizes = [(inputs, hidden), (hidden, hidden), (hidden, 1)]
        self.weights = nn.ParameterList([_uniform(members, a, b, a, generator) for a, b in sizes])
        self.biases = nn.ParameterList([_uniform(members, 1, b, a, generator) for a, b in sizes])

    def forward(self, x: Tensor) -> Tensor:
        members = self.weights[0].shape[0]
        h = x if x.dim() == 3 else x.expand(members, *x.shape)
        for layer, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            h = torch.baddbmm(bias, h, weight)
            h = nn.functional.silu(h) if layer < 2 else h
        return h.squeeze(-1)


@dataclass(frozen=True)
class Standardiser:
    """Per-column shift and scale, from training rows alone. Constant columns keep scale 1."""

    mean: np.ndarray
    scale: np.ndarray

    @classmethod
    def fit(cls, rows: np.ndarray) -> "Standardiser":
        """Statistics of float32 rows [N, D], in float64."""
        scale = rows.std(0, dtype=np.float64)
        return cls(rows.mean(0, dtype=np.float64), np.where(scale > 1e-8, scale, 1.0))

    def apply(self, rows: np.ndarray) -> np.ndarray:
        """Standardised float32 rows, clipped to ±10 so that a stray feature cannot run away with Q."""
        return np.clip((rows - self.mean) / self.scale, -10, 10).astype(np.float32)


def _uniform(members: int, rows: int, columns: int, fan_in: int, generator: torch.Generator) -> nn.Parameter:
    bound = 1 / math.sqrt(fan_in)
    return nn.Parameter((torch.rand(members, rows, columns, generator=generator) * 2 - 1) * bound)
