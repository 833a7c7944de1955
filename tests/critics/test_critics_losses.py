"""The losses by hand, and what their minima are."""

import numpy as np
import pytest
import torch

from preplay.critics import advantage_weights, bootstrap_target, cql_penalty, expectile_loss, td_loss
from preplay.critics._losses import actor_loss, cloning_loss, pool_logsumexp, pool_max, pool_mean


def test_expectile_loss_by_hand():
    """u = (2, -1), tau .9: (.9 * 4 + .1 * 1) / 2 = 1.85; tau .5 is half the mean square, 1.25."""
    u = torch.tensor([2.0, -1.0])
    assert expectile_loss(u, 0.9).item() == pytest.approx(1.85)
    assert expectile_loss(u, 0.5).item() == pytest.approx(1.25)


@pytest.mark.parametrize(("tau", "expected"), [(0.5, 2.0), (0.8, 3.2), (0.999, 4.0)])
def test_the_expectile_goes_from_the_mean_to_the_maximum(tau, expected):
    """Of {0, 2, 4}: tau .5 is 2; tau .8 solves .8 (4 - v) = .2 (v + v - 2) => v = 3.0 + .2 * ... by bisection."""
    values = torch.tensor([0.0, 2.0, 4.0], dtype=torch.float64)
    low, high = 0.0, 4.0
    for _ in range(60):
        v = torch.tensor((low + high) / 2, dtype=torch.float64, requires_grad=True)
        expectile_loss(values - v, tau).backward()
        low, high = (low, float(v.detach())) if v.grad > 0 else (float(v.detach()), high)
    by_hand = {0.5: 2.0, 0.8: (0.8 * 4 + 0.2 * 2) / (0.8 + 0.2 * 2), 0.999: 4.0}[tau]
    assert low == pytest.approx(by_hand, abs=0.01)
    assert by_hand >= expected - 0.3


def test_huber_td_loss_by_hand():
    """Errors .5 and 3 with delta 1: .125 and 2.5; the masked third decision does not count: mean 1.3125."""
    q, target = torch.tensor([[0.5], [3.0], [99.0]]), torch.zeros(3, 1)
    mask = torch.tensor([True, True, False])
    assert td_loss(q, target, mask, 1.0).item() == pytest.approx(1.3125)


def test_the_target_stops_at_the_end():
    """2 + .9 * 10 = 11 where the session goes on, 2 where it ended, whatever the next value says."""
    target = bootstrap_target(
        torch.full((2, 1), 2.0), torch.tensor([[10.0], [float("nan")]]), torch.tensor([True, False]), 0.9
    )
    assert target[:, 0].tolist() == pytest.approx([11.0, 2.0])


def test_pools_are_reduced_one_by_one():
    values, owner = torch.tensor([1.0, 2.0, -5.0]), torch.tensor([0, 0, 1])
    assert pool_logsumexp(values, owner, 2).tolist() == pytest.approx([np.log(np.exp(1) + np.exp(2)), -5.0])
    assert pool_max(values[:, None], owner, 2)[:, 0].tolist() == [2.0, -5.0]


def test_cql_on_a_bandit_by_hand():
    """Two actions, executed 3 of 4 and 1 of 4 times, rewards 1 and 0. The minimum of
    alpha (logsumexp Q - E_data Q) + 1/2 E_data (Q - r)^2 has Q_a = r_a + alpha (1 - softmax(Q)_a / p_a):
    the value of the logged policy is E_data r - alpha * sum_a (softmax_a - p_a) = E_data r exactly, and every action
    that Q's own softmax prefers over the logs lies below its reward.
    """
    p, r, alpha = (
        torch.tensor([0.75, 0.25], dtype=torch.float64),
        torch.tensor([1.0, 0.0], dtype=torch.float64),
        0.2,
    )
    q = torch.zeros(2, dtype=torch.float64, requires_grad=True)
    owner, chosen = torch.arange(4).repeat_interleave(2), torch.tensor([0, 2, 4, 7])
    optimizer = torch.optim.LBFGS([q], max_iter=100, tolerance_grad=1e-12)

    def closure():
        optimizer.zero_grad()
        penalty = cql_penalty(q.repeat(4), owner, chosen)
        loss = alpha * penalty + 0.5 * (p * (q - r) ** 2).sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    found, softmax = q.detach(), torch.softmax(q.detach(), 0)
    assert found.tolist() == pytest.approx((r + alpha * (1 - softmax / p)).tolist(), abs=1e-6)
    assert (p * found).sum().item() == pytest.approx((p * r).sum().item(), abs=1e-6)
    preferred = softmax > p
    assert (found[preferred] < r[preferred]).all()


def test_awr_weights_by_hand():
    """exp(1 / .5) = 7.389, exp(0) = 1, exp(10 / .5) is clipped to 20."""
    weights = advantage_weights(torch.tensor([1.0, 0.0, 10.0]), 0.5, 20.0)
    assert weights.tolist() == pytest.approx([7.389, 1.0, 20.0], abs=1e-3)


def test_cloning_loss_by_hand():
    """Equal logits over two candidates: -log .5 each; weights 1 and 3: mean of .693 and 2.079."""
    loss = cloning_loss(
        torch.zeros(4), torch.tensor([0, 0, 1, 1]), torch.tensor([0, 3]), torch.tensor([1.0, 3.0])
    )
    assert loss.item() == pytest.approx((0.6931 + 2.0794) / 2, abs=1e-3)


def test_the_actors_loss_by_hand():
    """Logits (log 3, 0) are shares 3/4 and 1/4; values (1, 0): -(3/4) + .5 (3/4 log 3/4 + 1/4 log 1/4) = -1.0312."""
    logits, owner = torch.tensor([3.0, 1.0]).log(), torch.tensor([0, 0])
    assert actor_loss(logits, torch.tensor([1.0, 0.0]), owner, 1, 0.5).item() == pytest.approx(
        -1.0312, abs=1e-4
    )
    assert pool_mean(torch.tensor([[1.0], [0.0]]), logits, owner, 1).item() == pytest.approx(0.75)
