"""The losses, each a plain function of tensors so that it can be checked by hand.

Legend: B decisions, H reward heads, P candidates of the B pools together.
"""

import torch
from torch import Tensor
from torch.nn.functional import huber_loss


def expectile_loss(difference: Tensor, tau: float) -> Tensor:
    """IQL's value loss: mean of |tau - 1(u < 0)| u^2 with u = Q - V (Kostrikov et al. 2021).

    tau = 0.5 gives the mean, tau towards 1 the maximum over the actions that the logs hold.
    """
    weight = torch.where(difference < 0, 1 - tau, tau)
    return (weight * difference**2).mean()


def td_loss(q: Tensor, target: Tensor, mask: Tensor, delta: float) -> Tensor:
    """Huber loss of q against a fixed target (both [B, H]) over the decisions in ``mask`` (bool [B])."""
    assert q.shape == target.shape, f"{tuple(q.shape)} against {tuple(target.shape)}"
    losses = huber_loss(q, target.detach(), reduction="none", delta=delta).mean(dim=1)
    return (losses * mask).sum() / mask.sum().clamp(min=1)


def bootstrap_target(reward: Tensor, next_value: Tensor, continues: Tensor, gamma: float) -> Tensor:
    """r + gamma V(s') where the session goes on, r where it ended: [B, H]."""
    return reward + gamma * torch.where(continues[:, None], next_value, torch.zeros_like(next_value))


def pool_logsumexp(values: Tensor, owner: Tensor, pools: int) -> Tensor:
    """log sum exp over each pool: values [P], owner int64 [P] -> [pools]."""
    top = values.new_full((pools,), -torch.inf).scatter_reduce(0, owner, values.detach(), "amax")
    total = values.new_zeros(pools).index_add(0, owner, torch.exp(values - top[owner]))
    return top + torch.log(total)


def pool_max(values: Tensor, owner: Tensor, pools: int) -> Tensor:
    """Maximum over each pool per head: values [P, H] -> [pools, H]."""
    start = values.new_full((pools, values.shape[1]), -torch.inf)
    return start.scatter_reduce(0, owner[:, None].expand_as(values), values, "amax")


def pool_mean(values: Tensor, logits: Tensor, owner: Tensor, pools: int) -> Tensor:
    """Mean over each pool under the softmax of the logits: values [P, H], logits [P] -> [pools, H]."""
    share = torch.exp(logits - pool_logsumexp(logits, owner, pools)[owner])
    return values.new_zeros(pools, values.shape[1]).index_add(0, owner, share[:, None] * values)


def actor_loss(logits: Tensor, values: Tensor, owner: Tensor, pools: int, temperature: float) -> Tensor:
    """Minus the policy's mean value and ``temperature`` times its entropy, over pools: logits [P], values [P]."""
    log_share = logits - pool_logsumexp(logits, owner, pools)[owner]
    return (torch.exp(log_share) * (temperature * log_share - values.detach())).sum() / pools


def cql_penalty(values: Tensor, owner: Tensor, chosen: Tensor) -> Tensor:
    """CQL(H) on candidate sets (Kumar et al. 2020): mean of logsumexp over the pool minus the executed action's Q.

    values [P], owner [P], chosen: row of each pool's executed action, int64 [B].
    """
    return (pool_logsumexp(values, owner, len(chosen)) - values[chosen]).mean()


def advantage_weights(advantage: Tensor, temperature: float, ceiling: float) -> Tensor:
    """AWR's weights exp(advantage / temperature), clipped (Peng et al. 2019)."""
    return torch.exp(advantage / temperature).clamp(max=ceiling)


def cloning_loss(logits: Tensor, owner: Tensor, chosen: Tensor, weights: Tensor) -> Tensor:
    """Weighted negative log-likelihood of the executed candidates under a softmax over each pool."""
    log_probability = logits[chosen] - pool_logsumexp(logits, owner, len(chosen))
    return -(weights.detach() * log_probability).mean()
