"""Reward and termination of a turn, from its condition and from the observation that followed.

A separate small net: heads shared with the dynamics over-fit. Truncation is not termination: a session cut by the
horizon teaches the net that nothing ended.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from preplay.world_model._config import WorldModelConfig
from preplay.world_model._memory import MEMORIES


class OutcomeNet(nn.Module):
    """Expected reward and termination logit of B turns."""

    reward_mean: Tensor
    reward_std: Tensor

    def __init__(self, latent: int, features: int, config: WorldModelConfig):
        super().__init__()
        self.memory = MEMORIES[config.memory](config.window, features)
        self.net = nn.Sequential(
            nn.Linear(self.memory.size + latent, config.width),
            nn.GELU(),
            nn.Dropout(0.1),
            nn.Linear(config.width, config.width),
            nn.GELU(),
            nn.Linear(config.width, 2),
        )
        self.register_buffer("reward_mean", torch.zeros(()))
        self.register_buffer("reward_std", torch.ones(()))

    def standardise(self, reward: Tensor) -> None:
        """Take centre and width of the training rewards (float [R])."""
        self.reward_mean.fill_(float(reward.mean()))
        self.reward_std.fill_(max(float(reward.std(correction=0)), 1e-6))

    def loss(self, condition: Tensor, latent: Tensor, reward: Tensor, terminated: Tensor) -> Tensor:
        """Squared error of the standardised reward plus cross-entropy of termination."""
        predicted, logit = self._raw(condition, latent)
        target = (reward - self.reward_mean) / self.reward_std
        return F.mse_loss(predicted, target) + F.binary_cross_entropy_with_logits(logit, terminated)

    def forward(self, condition: Tensor, latent: Tensor) -> tuple[Tensor, Tensor]:
        """Reward and termination probability, float64 [B] each."""
        predicted, logit = self._raw(condition, latent)
        reward = predicted.double() * self.reward_std.double() + self.reward_mean.double()
        return reward, logit.double().sigmoid()

    def _raw(self, condition: Tensor, latent: Tensor) -> tuple[Tensor, Tensor]:
        reward, logit = self.net(torch.cat([self.memory(condition), latent], -1)).unbind(-1)
        return reward, logit
