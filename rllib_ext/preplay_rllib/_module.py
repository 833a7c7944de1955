"""The PPO policy with uniform mixing: it acts, and is trained, as (1 - ε) π + ε / A."""

import math
from typing import Any

import torch
from ray.rllib.algorithms.ppo.torch.default_ppo_torch_rl_module import DefaultPPOTorchRLModule
from ray.rllib.core import Columns
from torch import Tensor


class MixedPPOModule(DefaultPPOTorchRLModule):
    """RLlib's default PPO module whose action logits are those of the mixture, so that ratios stay exact.

    ``model_config["uniform_mix"]`` is ε; continuous actions are left alone.
    """

    def _forward(self, batch: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        return self._mixed(super()._forward(batch, **kwargs))

    def _forward_train(self, batch: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        return self._mixed(super()._forward_train(batch, **kwargs))

    def _mixed(self, out: dict[str, Any]) -> dict[str, Any]:
        epsilon = self.model_config.get("uniform_mix", 0.0)
        if epsilon and hasattr(self.action_space, "n"):
            out[Columns.ACTION_DIST_INPUTS] = mix_uniform(out[Columns.ACTION_DIST_INPUTS], epsilon)
        return out


def mix_uniform(logits: Tensor, epsilon: float) -> Tensor:
    """Logits of (1 - ε) softmax(logits) + ε / A, float [..., A]."""
    own = torch.log_softmax(logits, -1) + math.log1p(-epsilon)
    uniform = torch.full_like(own, math.log(epsilon / own.shape[-1]))
    return torch.logaddexp(own, uniform)
