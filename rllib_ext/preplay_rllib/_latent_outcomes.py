"""What may follow: an ensemble of predictions, and the chance that a latent draws where more than one thing may.

The latent is one categorical variable. In training it is drawn from a posterior that sees what did follow, as in a
variational autoencoder; each member learns a prior of it, which imagination draws from. (Several variables with
independent priors, as Dreamer has, mix what never goes together.)

Shapes: E members, B rows, F features, O numbers that are predicted, Z categories (0 for no latent).
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from preplay_rllib._model import EnsembleMLP, draw_members

_TO_PRIOR = 0.8


class Outcomes(nn.Module):
    """The ensemble of predictions, its priors and their common posterior."""

    def __init__(self, members: int, features: int, outputs: int, hidden: int, categories: int):
        super().__init__()
        self.members, self.categories = members, categories
        self.net = EnsembleMLP(members, [features + categories, hidden, hidden, outputs])
        if categories:
            self.prior = EnsembleMLP(members, [features, hidden, categories])
            self.posterior = nn.Sequential(
                nn.Linear(features + outputs, hidden), nn.ReLU(), nn.Linear(hidden, categories)
            )

    def forward(self, features: Tensor, latent: Tensor) -> Tensor:
        """float32 [E, B, O] all members' predictions for one latent float32 [B, Z] per row."""
        return self.net(torch.cat([features, latent], 1))

    def guess(self, features: Tensor, generator: torch.Generator | None) -> Tensor:
        """float32 [B, Z] drawn from the prior of a member per row; without a generator what is likeliest."""
        if not self.categories:
            return features[:, :0]
        logits = self.prior(features)
        if generator is None:
            return self._one_hot(logits.mean(0).argmax(-1))
        chances = self.of_one(logits, generator).softmax(-1)
        return self._one_hot(torch.multinomial(chances, 1, generator=generator).squeeze(1))

    def infer(self, features: Tensor, followed: Tensor) -> tuple[Tensor, Tensor]:
        """The latent float32 [B, Z] of what followed, float32 [B, O], and how far it is from each member's prior,
        float32 [E, B]: mostly the prior is drawn to it."""
        if not self.categories:
            return features[:, :0], features.new_zeros(self.members, len(features))
        posterior = self.posterior(torch.cat([features, followed], 1)).log_softmax(-1)
        prior = self.prior(features).log_softmax(-1)
        chances = posterior.exp()
        drawn = self._one_hot(torch.multinomial(chances.detach(), 1).squeeze(1))
        latent = drawn + chances - chances.detach()  # gradients as if the chances were passed on
        distance = _TO_PRIOR * _divergence(posterior.detach(), prior)
        return latent, distance + (1 - _TO_PRIOR) * _divergence(posterior, prior.detach())

    def of_one(self, out: Tensor, generator: torch.Generator | None) -> Tensor:
        """float32 [B, ...] of [E, B, ...]: for each row that of a member drawn anew."""
        rows = torch.arange(out.shape[1], device=out.device)
        return out[draw_members(self.members, len(rows), generator, out.device), rows]

    def _one_hot(self, drawn: Tensor) -> Tensor:
        return F.one_hot(drawn, self.categories).float()


def _divergence(one: Tensor, other: Tensor) -> Tensor:
    """Kullback-Leibler divergence of log-chances [..., Z]."""
    return (one.exp() * (one - other)).sum(-1)
