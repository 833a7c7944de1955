"""Stretches of real rows as the latent model trains on them."""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Step:
    """The step before: code float32 [B, C], action [B, ...], and whether there was one, bool [B]."""

    code: Tensor
    action: Tensor
    known: Tensor


@dataclass(frozen=True)
class Stretch:
    """Real rows and those before them: observation [B, W + 2, ...], all others [B, W + 1, ...]."""

    observation: Tensor
    action: Tensor
    reward: Tensor
    terminated: Tensor
    bootstrap: Tensor
    known: Tensor

    @classmethod
    def of(cls, batch: dict[str, Tensor]) -> "Stretch":
        """From sampled rows with their past."""
        names = ("observation", "next", "action", "reward", "terminated", "bootstrap")
        now, past = {k: batch[k][:, None] for k in names}, batch["past_known"].bool()
        return cls(
            observation=torch.cat([batch["past_observation"], now["observation"], now["next"]], 1),
            action=torch.cat([batch["past_action"], now["action"]], 1),
            reward=torch.cat([batch["past_reward"], now["reward"]], 1),
            terminated=torch.cat([torch.zeros_like(past), now["terminated"].bool()], 1).float(),
            bootstrap=torch.cat([batch["past_bootstrap"], now["bootstrap"]], 1).float(),
            known=torch.cat([past, torch.ones_like(past[:, :1])], 1),
        )

    @property
    def steps(self) -> int:
        return self.action.shape[1]

    def before(self, t: int, codes: Tensor) -> Step | None:
        """The step before step t, of codes [B, T, C]."""
        return Step(codes[:, t - 1], self.action[:, t - 1], self.known[:, t - 1]) if t else None
