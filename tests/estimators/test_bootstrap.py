"""The bootstrap over sessions normalises again inside each resample."""

import numpy as np
import pytest
from benchmarks._known_problems import random_batch

from preplay.estimators import SessionBatch, evaluate_estimator, get_estimator
from preplay.estimators._bootstrap import session_counts
from preplay.estimators._evaluate import percentile_interval


def bandit(rng: np.random.Generator, n: int = 200) -> SessionBatch:
    """Rewards 10 or 11; the target gets 11 with probability .66, the log with .5: true value 10.66."""
    eleven = rng.random(n) < 0.5
    log_ratio = np.log(np.where(eleven, 0.66, 0.34) / 0.5)
    return SessionBatch(np.arange(n + 1), np.where(eleven, 11.0, 10.0), 1.0, log_ratio=log_ratio)


def test_normalised_again_the_interval_is_eighteen_times_narrower():
    """A fixed normaliser gives width 3.858 (coverage 1.00), a renewed one about .2 with nominal coverage."""
    rng, widths, hits = np.random.default_rng(0), [], 0
    for seed in range(100):
        estimate = evaluate_estimator(get_estimator("wis"), bandit(rng), resamples=500, seed=seed)
        widths.append(estimate.interval.width)
        hits += estimate.interval.contains(10.66)
    assert np.mean(widths) < 0.35
    assert hits >= 88


@pytest.mark.parametrize("name", ["mean", "is", "wis", "pdis", "wpdis", "dr", "wdr", "dm"])
@pytest.mark.parametrize("n", [60, 1500])
def test_equals_estimating_each_resample(name, n):
    """The same counts, sessions physically repeated, one estimate per resample (multinomial and Poisson)."""
    batch, estimator = random_batch(np.random.default_rng(1), n, 9), get_estimator(name)
    fast = estimator.resampled(batch, 4, seed=3)
    counts = np.concatenate([c for _, c in session_counts(n, 4, 3, 0)], 1).astype(int)
    for row in range(4):
        repeated = batch.select(np.repeat(batch.layout.order, counts[row]))
        assert fast[row] == pytest.approx(estimator.value(estimator.statistics(repeated)), rel=1e-9)


def test_counts_are_fair():
    for n in (50, 3000):
        counts = np.concatenate([c for _, c in session_counts(n, 400, 0, 0)], 1)
        assert counts.shape == (400, n)
        assert counts.mean() == pytest.approx(1, abs=0.01)
        assert counts.var() == pytest.approx(1, abs=0.05)
    assert (np.concatenate([c for _, c in session_counts(50, 400, 0, 0)], 1).sum(1) == 50).all()


def test_standard_error_agrees_with_the_delta_method():
    batch = random_batch(np.random.default_rng(2), 2000, 6, spread=0.2)
    for name in ("mean", "wis", "pdis", "wpdis", "wdr"):
        estimator = get_estimator(name)
        analytic = estimator.influence(batch).std() / np.sqrt(2000)
        assert estimator.resampled(batch, 2000, 0).std() == pytest.approx(analytic, rel=0.1)


def test_same_seed_same_resamples_for_every_target():
    """Two targets on one log share their resamples: identical targets differ by exactly nothing."""
    batch = random_batch(np.random.default_rng(3), 1200, 5)
    a, b = (get_estimator("wpdis").resampled(batch, 50, seed=9) for _ in range(2))
    assert (a == b).all()
    assert (a != get_estimator("wpdis").resampled(batch, 50, seed=10)).any()


def test_extreme_weights_and_unequal_lengths():
    batch = random_batch(np.random.default_rng(4), 80, 40, spread=60.0)
    estimator = get_estimator("wpdis")
    values = estimator.resampled(batch, 200, seed=0)
    assert np.isfinite(values).all()
    assert np.abs(values).max() < 500


def test_few_sessions_widen_the_percentiles():
    """10 degrees of freedom: t = 2.228·sqrt(1.1) = 2.337, tail Φ(−2.337) = .0097 instead of .025."""
    values = np.linspace(0, 1, 100_001)
    interval = percentile_interval(values, 0.95, 10)
    assert interval.low == pytest.approx(0.00972, abs=2e-5)
    assert interval.high == pytest.approx(1 - 0.00972, abs=2e-5)
    assert percentile_interval(values, 0.95).low == pytest.approx(0.025)
