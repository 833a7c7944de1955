"""Parts of the latent world model: what an observation is coded as, and what remembers the codes.

Shapes: B rows, T steps, C numbers of a code, I of what a memory reads per step, H of a belief.
"""

import torch
from torch import Tensor, nn


class VectorCodec(nn.Module):
    """A vector is its own code, in units of its spread over real training rows."""

    def __init__(self, size: int):
        super().__init__()
        self.size = size
        self.register_buffer("centre", torch.zeros(size))
        self.register_buffer("scale", torch.ones(size))

    def fit(self, observation: Tensor) -> None:
        """What never varies is coded as its difference from the mean."""
        spread = observation.std(0)
        self.centre.copy_(observation.mean(0))
        self.scale.copy_(torch.where(spread < 1e-3, 1.0, spread))

    def encode(self, observation: Tensor) -> Tensor:
        return (observation - self.centre) / self.scale

    def decode(self, code: Tensor) -> Tensor:
        return code * self.scale + self.centre


class GRUMemory(nn.Module):
    """A belief that every step changes."""

    def __init__(self, inputs: int, size: int):
        super().__init__()
        self.cell, self.size = nn.GRUCell(inputs, size), size

    def begin(self, rows: int, device: torch.device) -> Tensor:
        """float32 [B, H] the belief before anything was seen."""
        return torch.zeros(rows, self.size, device=device)

    def update(self, belief: Tensor, seen: Tensor) -> Tensor:
        """The belief after one more step float32 [B, I]."""
        return self.cell(seen, belief)
