"""The distribution of returns under the target."""

import numpy as np
import pytest
from benchmarks._known_problems import random_batch, stop_go

from preplay.errors import PreplayError
from preplay.estimators import ReturnDistribution, SessionBatch, get_estimator


def by_hand() -> ReturnDistribution:
    """Returns 0, 1, 3 with weights 1, 2, 1: F = .25, .75, 1."""
    return ReturnDistribution(np.array([3.0, 0, 1]), np.log([1.0, 1, 2]))


def test_cdf_quantiles_cvar_variance_by_hand():
    d = by_hand()
    assert d.cdf(np.array([-1.0, 0, 0.5, 1, 3])) == pytest.approx([0, 0.25, 0.25, 0.75, 1])
    assert [d.quantile(q) for q in (0.25, 0.3, 0.75, 1.0)] == [0, 1, 1, 3]
    assert d.mean == pytest.approx(1.25)
    assert d.variance == pytest.approx(0.25 * 1.25**2 + 0.5 * 0.25**2 + 0.25 * 1.75**2)
    assert d.cvar(0.25) == 0
    assert d.cvar(0.5) == pytest.approx(0.5)  # half from 0, half from 1
    assert d.cvar(1.0) == pytest.approx(1.25)


def test_first_turn_is_not_discounted():
    batch = SessionBatch([0, 2], [1.0, 1.0], 0.5, log_ratio=[0.0, 0.0])
    assert ReturnDistribution.of(batch).mean == pytest.approx(1.5)


def test_mean_is_wis_and_shards_merge():
    batch = random_batch(np.random.default_rng(0), 60, 7)
    whole = ReturnDistribution.of(batch)
    wis = get_estimator("wis")
    assert whole.mean == pytest.approx(wis.value(wis.statistics(batch)), abs=1e-12)
    a, b = (ReturnDistribution.of(batch.select(p)) for p in np.array_split(np.arange(60), 2))
    for merged in (a + b, b + a):
        assert merged.quantile(0.3) == whole.quantile(0.3)
        assert merged.cvar(0.2) == pytest.approx(whole.cvar(0.2), abs=1e-12)
        assert merged.variance == pytest.approx(whole.variance, abs=1e-12)


def test_stop_go_target_distribution():
    """Under the target G is 1 with probability .9: median 1, variance .09, worst 10 % return 0."""
    d = ReturnDistribution.of(stop_go(20_000, np.random.default_rng(1)))
    assert d.cdf(np.array([0.0]))[0] == pytest.approx(0.1, abs=0.01)
    assert d.quantile(0.5) == 1
    assert d.variance == pytest.approx(0.09, abs=0.01)
    assert d.cvar(0.05) == 0


def test_intervals_cover():
    rng, hits, band_hits = np.random.default_rng(2), 0, 0
    for seed in range(60):
        d = ReturnDistribution.of(stop_go(300, rng))
        made = d.intervals(share=0.2, resamples=300, seed=seed)
        hits += made["cvar"].contains(0.5)  # worst 20 %: half of them 0, half 1
        low, high = d.band(np.array([0.0]), resamples=300, seed=seed)
        band_hits += low[0] <= 0.1 <= high[0]
    assert hits >= 52
    assert band_hits >= 52


def test_bad_shares_and_no_weight():
    with pytest.raises(PreplayError, match="share of sessions is 0"):
        by_hand().quantile(0)
    empty = ReturnDistribution(np.array([1.0, 2.0]), np.array([-np.inf, -np.inf]))
    assert np.isnan(empty.mean)
    assert np.isnan(empty.quantile(0.5))
    assert empty.intervals(share=0.5)["mean"].width == np.inf
