"""Curves of the report from small arrays, by hand."""

import numpy as np
import pytest

from preplay.estimators import Resampled, SessionBatch
from preplay.pipeline._curves import _checked, differences, logged_returns, returns_of, weights_of
from preplay.pipeline._weighted import WeightedSessions

# Three sessions of two turns and one of one turn; weights 2 * 2 = 4, 1 * .5 = .5, 1 * 0 = 0 and 1.
OFFSETS = [0, 2, 4, 6, 7]
RATIO = np.array([2, 2, 1, 0.5, 1, 0, 1.0])
REWARD = np.array([0, 1, 0, 0, 0, 3, 1.0])


@pytest.fixture
def batch():
    with np.errstate(divide="ignore"):
        return SessionBatch(OFFSETS, REWARD, log_ratio=np.log(RATIO))


def test_weights_by_hand(batch):
    found = weights_of(WeightedSessions(batch), None)
    assert (found.sessions, found.zero_weights, sum(found.counts)) == (4, 1, 3)
    # log10 of .5 and 4
    assert (found.log10_edges[0], found.log10_edges[-1]) == pytest.approx((-0.30103, 0.60206))
    assert found.clip_estimator == "wpdis/1"
    # Step 1: weights 2, 1, 1, 1 of five; step 2: 4, .5, 0 and 1 (kept). (4 * 1) / 5.5 at step 2, 1 / 5 at step 1
    unclipped = found.clips[-1]
    assert (unclipped.clip, unclipped.clipped_share) == (None, 0.0)
    assert unclipped.value == pytest.approx(4 / 5.5 + 1 / 5)
    # Cut at 1: 1 / (1 + .5 + 0 + 1) at step 2, 1 / 4 at step 1; two of seven turns are cut
    assert found.clips[0].value == pytest.approx(1 / 2.5 + 1 / 4)
    assert found.clips[0].clipped_share == pytest.approx(2 / 7)


def test_clipping_of_the_corrected_estimate(batch):
    corrected = SessionBatch(OFFSETS, REWARD, log_ratio=batch.log_ratio, q=np.zeros(7), v=np.full(7, 0.25))
    found = weights_of(WeightedSessions(batch), corrected)
    assert found.clip_estimator == "model.wdr/1"
    # v(s_0) = .25; step 1: .25 more behind each first turn of the long sessions; the last turn of session 4 pays 1.
    # Step 1: (.25 * 2 + .25 + .25 + 1) / 5 = .4; step 2: 4 * 1 / 5.5.
    assert found.clips[-1].value == pytest.approx(0.25 + 0.4 + 4 / 5.5)


def test_nothing_without_propensities():
    bare = SessionBatch(OFFSETS, REWARD)
    assert weights_of(WeightedSessions(bare), None) is None
    assert returns_of(bare, level=0.95, seed=0) is None


def test_returns_of_policy_and_logs_by_hand(batch):
    # Returns 1, 0, 3, 1 with weights 4, .5, 0, 1 of 5.5.
    curve, logged = returns_of(batch, level=0.95, seed=0), logged_returns(batch)
    assert curve.x == logged.x
    assert (curve.x[0], curve.x[-1]) == (0.0, 3.0)
    assert (curve.cdf[0], curve.cdf[-1]) == pytest.approx((0.5 / 5.5, 1.0), abs=1e-4)
    assert curve.cdf[20] == pytest.approx(1.0)
    assert (logged.cdf[0], logged.cdf[20], logged.cdf[-1]) == (0.25, 0.75, 1.0)
    assert set(curve.low + curve.high) == {
        None
    }  # some resamples hold only the session without weight: no band


def test_band_around_the_returns():
    batch = SessionBatch(np.arange(41), np.tile([0.0, 1.0], 20), log_ratio=np.tile(np.log([1.0, 2.0]), 20))
    curve = returns_of(batch, level=0.95, seed=0)
    # 20 sessions of 0 with weight 1, 20 of 1 with weight 2: a third lies at 0; the band reaches about .15
    assert curve.cdf[0] == pytest.approx(1 / 3, abs=1e-4)
    assert 0.1 < curve.cdf[0] - curve.low[0] < 0.2
    assert curve.cdf[0] - curve.low[0] == pytest.approx(curve.high[0] - curve.cdf[0], abs=1e-4)


def test_differences_of_shared_resamples():
    # "b" is always .5 above "a": nothing is left to chance, however much both vary.
    shared = np.random.default_rng(0).normal(size=999)
    found = {"a": Resampled(0.0, shared), "b": Resampled(0.5, shared + 0.5)}
    (pair,) = differences(found, 0.9)
    assert (pair.better, pair.other, pair.difference) == ("b", "a", 0.5)
    assert pair.standard_error == pytest.approx(0, abs=1e-12)
    assert (pair.interval.low, pair.interval.level) == (pytest.approx(0.5), 0.9)
    assert pair.p_value == pytest.approx(2 / 1000)
    assert differences({"a": found["a"]}, 0.9) == []


def test_propensities_of_a_state_that_says_everything_and_of_one_that_says_nothing():
    rng = np.random.default_rng(1)
    session = np.repeat(np.arange(60), 5)
    cluster = rng.integers(0, 2, 300)
    telling = _checked(np.eye(2)[cluster] * 5, cluster, session, 2, seed=0)
    silent = _checked(rng.normal(size=(300, 2)), cluster, session, 2, seed=0)
    assert telling.brier < 0.01
    assert silent.brier == pytest.approx(0.5, abs=0.05)
    assert silent.base_brier == pytest.approx(0.5, abs=0.02)
    assert sum(b.count for b in silent.reliability) == 600  # every turn once for each of the two groups
