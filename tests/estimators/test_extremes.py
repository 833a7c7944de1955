"""Long sessions and weights that no float holds."""

import numpy as np
import pytest
from benchmarks._known_problems import random_batch

from preplay.errors import PreplayError
from preplay.estimators import SessionBatch, evaluate_estimator, get_estimator

WEIGHTED = ["is", "wis", "pdis", "wpdis"]


def sessions(n: int, steps: int, ratio, reward=None) -> SessionBatch:
    rewards = np.ones(n * steps) if reward is None else reward
    log_ratio = np.broadcast_to(np.log(np.asarray(ratio, float)), (n, steps)).ravel()
    return SessionBatch(np.arange(0, n * steps + 1, steps), rewards, 1.0, log_ratio=log_ratio)


@pytest.mark.parametrize("steps", [400, 5000])
def test_long_sessions_of_the_same_policy_are_exact(steps):
    reward = np.random.default_rng(0).normal(size=3 * steps)
    batch = sessions(3, steps, 1.0, reward)
    for name in WEIGHTED:
        estimator = get_estimator(name)
        expected = reward.reshape(3, steps).sum(1).mean()
        assert estimator.value(estimator.statistics(batch)) == pytest.approx(expected, abs=1e-10)


def test_five_thousand_random_steps_stay_finite():
    rng = np.random.default_rng(1)
    n, steps = 20, 5000
    log_ratio = rng.normal(size=n * steps)
    batch = SessionBatch(
        np.arange(0, n * steps + 1, steps), rng.normal(size=n * steps), 0.999, log_ratio=log_ratio
    )
    estimate = evaluate_estimator(get_estimator("wpdis"), batch, resamples=200)
    assert np.isfinite(estimate.raw_value)
    assert estimate.verdict != "estimate"
    assert estimate.diagnostics["ess_last"] < 2


def test_three_to_the_seven_hundred_is_flagged_not_infinite():
    """log w = 700·ln 3 = 769.03, beyond e^709.78; one such session among 50 of weight 1."""
    ratio = np.ones((50, 700))
    ratio[0] = 3.0
    batch = sessions(50, 700, ratio)
    plain = evaluate_estimator(get_estimator("is"), batch, resamples=100)
    assert plain.value is None
    assert plain.verdict == "not identified"
    assert plain.diagnostics["log_max_weight"] == pytest.approx(700 * np.log(3))
    assert plain.diagnostics["ess_last"] == pytest.approx(1)
    assert "inf" not in plain.model_dump_json().lower()
    normalised = evaluate_estimator(get_estimator("wpdis"), batch, resamples=100)
    assert normalised.raw_value == pytest.approx(700)
    assert normalised.diagnostics["max_weight_share"] == pytest.approx(1)
    assert normalised.verdict == "bounds only"


def test_log_probabilities_of_long_texts():
    """Token sums of −3,000 in both policies: only their difference counts."""
    rng = np.random.default_rng(2)
    logged, target = -3000 + rng.normal(size=200), -3000 + rng.normal(size=200)
    batch = SessionBatch(np.arange(201), np.ones(200), 1.0, log_ratio=target - logged)
    estimator = get_estimator("wis")
    assert estimator.value(estimator.statistics(batch)) == pytest.approx(1)


def test_a_target_that_never_acts_so_is_not_identified():
    batch = sessions(100, 3, 1.0)
    batch = SessionBatch(batch.offsets, batch.reward, 1.0, log_ratio=np.full(300, -np.inf))
    plain = get_estimator("is")
    assert plain.value(plain.statistics(batch)) == 0.0
    for name in WEIGHTED:
        estimate = evaluate_estimator(get_estimator(name), batch, resamples=100)
        assert estimate.value is None, name
        assert estimate.verdict == "not identified"
        assert "never takes" in estimate.reason
    normalised = get_estimator("wis")
    assert np.isnan(normalised.value(normalised.statistics(batch)))


def test_one_session_has_an_unbounded_interval():
    batch = random_batch(np.random.default_rng(3), 1, 5)
    for name in ("mean", "wpdis", "wdr"):
        estimate = evaluate_estimator(get_estimator(name), batch)
        assert (estimate.interval.low, estimate.interval.high) == (-np.inf, np.inf)
        assert estimate.verdict == "bounds only"
        assert estimate.standard_error is None


def test_shards_of_extreme_weights_merge():
    ratio = np.ones((40, 700))
    ratio[7], ratio[9] = 3.0, 1e-3
    batch = sessions(40, 700, ratio)
    estimator = get_estimator("wpdis")
    a, b = (
        estimator.statistics(batch.select(np.arange(8))),
        estimator.statistics(batch.select(np.arange(8, 40))),
    )
    assert estimator.value(a + b) == pytest.approx(estimator.value(estimator.statistics(batch)), rel=1e-12)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"offsets": [0]}, "no session"),
        ({"offsets": [0, 2, 2, 4]}, "at least one turn"),
        ({"gamma": 1.2}, "gamma is 1.2"),
        ({"reward": [1.0, np.nan, 0, 0]}, "reward is nan"),
        ({"log_ratio": [0.0, np.inf, 0, 0]}, "log_ratio is inf"),
        ({"reward": [1.0]}, "reward has shape"),
        ({"terminated": [False, False], "truncated": [False, True]}, "neither terminated nor was truncated"),
    ],
)
def test_bad_batches_are_refused(change, message):
    good = {"offsets": [0, 2, 4], "reward": [1.0, 0, 0, 1], "gamma": 1.0}
    with pytest.raises(PreplayError, match=message):
        SessionBatch(**(good | change))


def test_missing_array_and_unknown_name_are_explained():
    batch = SessionBatch([0, 2], [1.0, 0], 1.0)
    with pytest.raises(PreplayError, match="wdr/1 needs 'log_ratio'"):
        get_estimator("wdr").statistics(batch)
    with pytest.raises(PreplayError, match="no estimator 'wdr/9'"):
        get_estimator("wdr/9")
