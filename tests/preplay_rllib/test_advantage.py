"""Advantages of branches, by hand (traps 1-3, 9, 14, 16)."""

import pytest
import torch

from preplay_rllib._imagine import _scaled, advantage

GAMMA, LAMBDA = 0.9, 0.8


def column(*values) -> torch.Tensor:
    return torch.tensor(values)[:, None]


def compute(reward, value, final, terminated, alive):
    values = column(*map(float, value))
    following = torch.cat([values[1:], torch.tensor([[final]])])
    return advantage(
        column(*map(float, reward)), values, following, column(*terminated), column(*alive), GAMMA, LAMBDA
    ).flatten()


def test_three_steps_cut_by_the_horizon_bootstrap_with_the_last_value():
    a2 = 3 + 0.9 * 4.0 - 0.3
    a1 = 2 + 0.9 * 0.3 - 0.2 + 0.72 * a2
    a0 = 1 + 0.9 * 0.2 - 0.1 + 0.72 * a1
    got = compute([1, 2, 3], [0.1, 0.2, 0.3], 4.0, [False] * 3, [True] * 3)
    assert got.tolist() == pytest.approx([a0, a1, a2])


def test_a_terminated_step_is_credited_but_not_bootstrapped():
    got = compute([0, 1], [0.5, 0.25], 9.0, [False, True], [True, True])
    a1 = 1 - 0.25
    assert got.tolist() == pytest.approx([0.9 * 0.25 - 0.5 + 0.72 * a1, a1])


def test_rows_after_the_end_of_a_branch_count_nothing_and_leak_nothing():
    got = compute([1, 100, 100], [0.5, 7.0, 7.0], 9.0, [True, False, False], [True, False, False])
    assert got.tolist() == pytest.approx([0.5, 0, 0])


def test_a_branch_cut_without_termination_bootstraps_where_it_was_cut():
    got = compute([0, 100], [0.5, 2.0], 9.0, [False, False], [True, False])
    assert got.tolist() == pytest.approx([0.9 * 2.0 - 0.5, 0])


def test_advantages_are_scaled_by_no_less_than_a_tenth_and_not_at_all_without_success():
    small = torch.tensor([0.01, -0.01, 0.01, -0.01])
    assert torch.equal(_scaled(small, anything=False), small)
    assert torch.allclose(_scaled(small, anything=True), small / 0.1)
    large = small * 1000
    assert torch.allclose(_scaled(large, anything=True), large / large.std())
