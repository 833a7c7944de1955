"""Fidelity figures against hand calculations."""

import numpy as np
import pytest
import torch

from preplay.world_model._fidelity import calibration_bins, energy_distance, energy_score


def test_energy_score_by_hand():
    # Samples 0 and 2, truth 1: E|X-y| = 1, E|X-X'| = 2 over distinct pairs, 1 - 2/2 = 0.
    samples, real = torch.tensor([[[0.0]], [[2.0]]]), torch.tensor([[1.0]])
    assert energy_score(samples, real) == pytest.approx(0.0)
    # Both samples at 3: distance 2, no spread.
    assert energy_score(torch.full((2, 1, 1), 3.0), real) == pytest.approx(2.0)


def test_energy_score_prefers_the_true_spread():
    generator = torch.Generator().manual_seed(0)
    real = torch.randn(2000, 1, generator=generator)

    def score(spread):
        return energy_score(spread * torch.randn(16, 2000, 1, generator=generator), real)

    assert score(1.0) < score(0.5)
    assert score(1.0) < score(2.0)


def test_energy_distance_by_hand():
    # |0-3| = 3 across, nothing within: 2 * 3 = 6.
    assert energy_distance(torch.zeros(2, 1), torch.full((2, 1), 3.0)) == pytest.approx(6.0)


def test_calibration_bins_by_hand():
    bins = calibration_bins(np.array([0.05, 0.05, 0.95, 1.0]), np.array([0.0, 1.0, 1.0, 1.0]))
    assert [(round(b.predicted, 3), b.observed, b.turns) for b in bins] == [(0.05, 0.5, 2), (0.975, 1.0, 2)]
