"""The denoiser: a residual MLP whose blocks share one modulation (adaLN-single, Chen et al. 2023)."""

import math

import torch
from torch import Tensor, nn

from preplay.world_model._config import WorldModelConfig
from preplay.world_model._memory import MEMORIES

TIME_FEATURES = 32


class Denoiser(nn.Module):
    """Predicts velocity float32 [B, L] from a noisy latent, its noise level and the condition."""

    def __init__(self, latent: int, features: int, config: WorldModelConfig):
        super().__init__()
        width = config.width
        self.memory = MEMORIES[config.memory](config.window, features)
        self.embed_latent = nn.Linear(latent, width)
        self.embed_time = nn.Sequential(nn.Linear(TIME_FEATURES, width), nn.SiLU(), nn.Linear(width, width))
        self.embed_condition = nn.Sequential(
            nn.Linear(self.memory.size, width), nn.SiLU(), nn.Linear(width, width)
        )
        self.no_condition = nn.Parameter(torch.zeros(width))
        self.modulation = nn.Sequential(nn.SiLU(), nn.Linear(width, 3 * width))
        self.blocks = nn.ModuleList(_Block(width) for _ in range(config.blocks))
        self.norm = nn.LayerNorm(width)
        self.out = nn.Linear(width, latent)
        nn.init.zeros_(self.out.weight)
        nn.init.zeros_(self.out.bias)

    def encode(self, condition: Tensor, drop: Tensor | None = None) -> Tensor:
        """Condition float32 [B, W, F] as [B, width]; rows in ``drop`` (bool [B]) get the learned 'nothing'."""
        encoded = self.embed_condition(self.memory(condition))
        return encoded if drop is None else torch.where(drop[:, None], self.no_condition, encoded)

    def forward(self, noisy: Tensor, level: Tensor, encoded: Tensor) -> Tensor:
        """``level`` float32 [B], or [1] for all rows, in [0, 1]; ``encoded`` from :meth:`encode`."""
        shared = self.embed_time(_sinusoid(level)) + encoded
        modulation = self.modulation(shared)
        hidden = self.embed_latent(noisy) + encoded
        for block in self.blocks:
            hidden = block(hidden, modulation)
        return self.out(self.norm(hidden))


class _Block(nn.Module):
    """One residual MLP; its modulation is the shared one plus a learned offset."""

    def __init__(self, width: int):
        super().__init__()
        self.offset = nn.Parameter(torch.randn(3 * width) / width**0.5)
        self.norm = nn.LayerNorm(width, elementwise_affine=False)
        self.net = nn.Sequential(nn.Linear(width, width), nn.SiLU(), nn.Linear(width, width))

    def forward(self, hidden: Tensor, modulation: Tensor) -> Tensor:
        shift, scale, gate = (modulation + self.offset).chunk(3, -1)
        return hidden + gate * self.net(self.norm(hidden) * (1 + scale) + shift)


def _sinusoid(level: Tensor) -> Tensor:
    frequencies = torch.exp(torch.linspace(0, math.log(1000), TIME_FEATURES // 2, device=level.device))
    angles = level[:, None] * frequencies
    return torch.cat([angles.sin(), angles.cos()], -1)
