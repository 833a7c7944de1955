"""Selection metrics on a toy: V = [1, 2, 3, 4], V̂ = [2, 1, 4, 3], baseline 1.5."""

import numpy as np
import pytest

from preplay.errors import PreplayError
from preplay.estimators import (
    normalised_regret_at_k,
    picked_at_k,
    safety_errors,
    sharpe_ratio_at_k,
    spearman,
    sum_regret_at_k,
    value_regret_at_k,
)

V, HAT = np.array([1.0, 2, 3, 4]), np.array([2.0, 1, 4, 3])


def test_rank_correlation():
    assert spearman(V, HAT) == pytest.approx(0.6)  # 1 − 6·4/(4·15)
    assert np.isnan(spearman(V, np.ones(4)))
    assert np.isnan(spearman(np.ones(1), np.ones(1)))


def test_the_two_regrets_are_different():
    # picks in order: 3, 4, 1, 2 (true values of the estimated best first)
    assert [normalised_regret_at_k(V, HAT, k) for k in (1, 2, 3)] == pytest.approx([0.25, 0, 0])
    assert [sum_regret_at_k(V, HAT, k) for k in (1, 2, 3)] == pytest.approx([1, 0, 1])
    assert [value_regret_at_k(V, HAT, k) for k in (1, 2, 3)] == pytest.approx([1, 0, 0])
    assert np.isnan(normalised_regret_at_k(np.array([0.0, -1]), np.array([1.0, 2]), 1))


def test_sharpe_ratio():
    assert sharpe_ratio_at_k(V, HAT, 2, 1.5) == pytest.approx(3.535534, abs=1e-6)  # 2.5/.7071
    assert sharpe_ratio_at_k(V, HAT, 3, 1.5) == pytest.approx(1.636634, abs=1e-6)  # 2.5/1.5275
    assert np.isnan(sharpe_ratio_at_k(V, HAT, 1, 1.5))
    assert sharpe_ratio_at_k(V, HAT, 2, 9.0) == 0


def test_picks_and_safety():
    assert picked_at_k(V, HAT, 3) == {"best": 4, "mean": pytest.approx(8 / 3), "worst": 1}
    # safe from 2.5: true {3, 4}, called {4, 3}: no error; from 1.5: policy 2 is safe but called unsafe
    assert safety_errors(V, HAT, 2.5) == {"type_i": 0, "type_ii": 0}
    assert safety_errors(V, HAT, 1.5) == {"type_i": pytest.approx(1 / 3), "type_ii": 1}
    assert np.isnan(safety_errors(V, HAT, 0)["type_ii"])


def test_bad_k_and_missing_estimates():
    with pytest.raises(PreplayError, match="k is 5"):
        value_regret_at_k(V, HAT, 5)
    with pytest.raises(PreplayError, match="cannot be ranked"):
        value_regret_at_k(V, np.array([1, np.nan, 2, 3]), 1)
