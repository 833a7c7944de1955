"""The PPO policy with uniform mixing: it acts, and is trained, as (1 - ε) π + ε / A."""

import math
from typing import Any

import torch
from ray.rllib.algorithms.ppo.torch.default_ppo_torch_rl_module import DefaultPPOTorchRLModule
from ray.rllib.core import Columns
from torch import Tensor

IMAGINED = "imagined"
"""Column of imagined rows: they teach at full strength."""


class MixedPPOModule(DefaultPPOTorchRLModule):
    """RLlib's default PPO module whose action logits are those of the mixture, so that ratios stay exact.

    ``model_config["uniform_mix"]`` is ε; continuous actions are left alone. An action that π has given up is still
    taken by chance, but hardly changes π: its probability is nearly all ε / A, whatever π is. Imagined rows therefore
    have the gradient of π itself.
    """

    @property
    def mix(self) -> float:
        """ε; 0 for continuous actions."""
        return self.model_config.get("uniform_mix", 0.0) if hasattr(self.action_space, "n") else 0.0

    def _forward(self, batch: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        return self._mixed(super()._forward(batch, **kwargs))

    def _forward_train(self, batch: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        out = super()._forward_train(batch, **kwargs)
        own = out[Columns.ACTION_DIST_INPUTS]
        out = self._mixed(out)
        if self.mix and IMAGINED in batch:
            out[Columns.ACTION_DIST_INPUTS] = out[Columns.ACTION_DIST_INPUTS].detach() + own - own.detach()
        return out

    def _mixed(self, out: dict[str, Any]) -> dict[str, Any]:
        if self.mix:
            out[Columns.ACTION_DIST_INPUTS] = mix_uniform(out[Columns.ACTION_DIST_INPUTS], self.mix)
        return out


def mix_uniform(logits: Tensor, epsilon: float) -> Tensor:
    """Logits of (1 - ε) softmax(logits) + ε / A, float [..., A]."""
    own = torch.log_softmax(logits, -1) + math.log1p(-epsilon)
    uniform = torch.full_like(own, math.log(epsilon / own.shape[-1]))
    return torch.logaddexp(own, uniform)
