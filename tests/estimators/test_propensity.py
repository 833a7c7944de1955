"""Logged propensities checked row by row, and estimated ones judged out of fold."""

import json

import numpy as np
import pytest

from preplay.errors import PreplayError
from preplay.estimators import calibration, check_log_probs, estimate_propensities, require_propensities


def test_each_fault_is_counted_and_located():
    check = check_log_probs(
        [-0.5, None, float("nan"), -np.inf, 0.7, 0.0, -3000.0, 1e-9],
        sources=[f"log.jsonl:{i}" for i in range(1, 9)],
    )
    assert check.valid.tolist() == [True, False, False, False, False, True, True, True]
    assert check.counts == {"missing": 1, "not a number": 1, "impossible": 1, "positive": 1}
    assert "(first: log.jsonl:5)" in next(m for m in check.messages if "above 0" in m)


def test_densities_and_probabilities_are_recognised():
    check = check_log_probs(np.array([0.2, 0.9, 1.7, -0.1]))
    assert check.counts == {"positive": 3}
    assert "75% of the values are above 0" in check.warnings[0]
    assert "densities" in check.warnings[0]


def test_the_same_one_everywhere_is_suspicious():
    assert "looks like a default" in check_log_probs(np.zeros(50)).warnings[0]
    assert "uniform policy" in check_log_probs(np.full(50, np.log(0.25))).warnings[0]
    assert check_log_probs(np.log([0.2, 0.3])).warnings == []


def test_sampling_settings_in_extras_warn():
    extras = [json.dumps({"request": {"top_p": 0.9, "temperature": 1}}), json.dumps({"top_p": 1.0}), "{}"]
    (warning,) = check_log_probs(np.log([0.2, 0.3, 0.4]), extras=extras).warnings
    assert "top_p (1 rows)" in warning
    assert "temperature" not in warning


def test_no_usable_row_is_refused():
    with pytest.raises(PreplayError, match="2 rows: no log-probability"):
        require_propensities(check_log_probs([None, None]))


def test_estimated_propensities_are_calibrated():
    """P(1|x) = 1/(1 + e^−2x) logged; the estimate must come near and know its error."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(4000, 3))
    p = 1 / (1 + np.exp(-2 * x[:, 0]))
    cluster = (rng.random(4000) < p).astype(int)
    found = estimate_propensities(x.astype(np.float32), cluster, np.repeat(np.arange(400), 10), 2)
    truth = np.log(np.where(cluster == 1, p, 1 - p))
    assert np.abs(np.exp(found.log_prob) - np.exp(truth)).mean() < 0.03
    assert found.calibration.ece < 0.03
    # the best Brier score is E[2p(1 − p)]
    assert found.calibration.brier == pytest.approx(np.mean(2 * p * (1 - p)), abs=0.02)
    assert found.calibration.predicted == pytest.approx(found.calibration.observed, abs=0.06)
    assert np.exp(found.model.log_prob_all(x[:5])).sum(1) == pytest.approx(1)


def test_held_out_sessions_expose_memorised_noise():
    """Session-constant features and labels at random: in-fold fits look sharp, held-out ones must not."""
    rng = np.random.default_rng(1)
    session = np.repeat(np.arange(40), 10)
    x = rng.normal(size=(40, 30)).astype(np.float32)[session]
    cluster = rng.integers(0, 2, 40)[session]
    found = estimate_propensities(x, cluster, session, 2)
    assert found.model.temperature > 2
    assert found.calibration.log_loss == pytest.approx(np.log(2), abs=0.1)
    assert found.calibration.ece < 0.2


def test_clusters_absent_from_a_fold_keep_a_floor():
    rng = np.random.default_rng(2)
    cluster = np.r_[np.full(95, 0), np.full(5, 2)]
    found = estimate_propensities(rng.normal(size=(100, 2)), cluster, np.arange(100), 3)
    assert (found.log_prob > np.log(1e-4 / 3) - 1e-9).all()
    with pytest.raises(PreplayError, match="cannot be split"):
        estimate_propensities(rng.normal(size=(3, 2)), cluster[:3], np.arange(3), 3)


def test_calibration_by_hand():
    """Three turns, probabilities of cluster 0: .8 (taken), .8 (not), .8 (taken).

    Confidence .8, accuracy 2/3: ECE = .1333. Brier: (.2² + .2²)·2 and (.8² + .8²) → (.08·2 + 1.28)/3 = .48.
    """
    probabilities = np.tile([0.8, 0.2], (3, 1))
    made = calibration(probabilities, np.array([0, 1, 0]))
    assert made.ece == pytest.approx(0.8 - 2 / 3)
    assert made.brier == pytest.approx(0.48)
    assert made.observed == pytest.approx([1 / 3, 2 / 3])
    assert made.log_loss == pytest.approx(-(2 * np.log(0.8) + np.log(0.2)) / 3)
