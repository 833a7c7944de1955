"""Logs of several policies: factors by hand, what they must not do, and that they pay."""

from dataclasses import replace

import numpy as np
import pytest

from preplay.estimators import (
    SessionBatch,
    evaluate_estimator,
    get_estimator,
    logger_weights,
    starts_differ,
    weigh_loggers,
)


def one_turn(weights: np.ndarray, rewards: np.ndarray | None = None) -> SessionBatch:
    """Sessions of one turn with these weights."""
    n = len(weights)
    with np.errstate(divide="ignore"):
        ratio = np.log(weights)
    return SessionBatch(np.arange(n + 1), np.zeros(n) if rewards is None else rewards, log_ratio=ratio)


def value(name: str, batch: SessionBatch) -> float:
    estimator = get_estimator(name)
    return estimator.value(estimator.statistics(batch))


NAMES = np.repeat(["far", "near"], [100, 300])
MIXED = one_turn(np.concatenate([np.tile([0.5, 1.5], 50), np.ones(300)]))


def test_sessions_count_by_the_effective_share_of_their_logger():
    # far: (Σw)²/Σw² = 100²/125 = 80 of 100, near: 300 of 300. Factors .8 and 1 over a mean of (80 + 300)/400.
    found = logger_weights(MIXED, NAMES)
    assert found == {"far": pytest.approx(0.8 / 0.95), "near": pytest.approx(1 / 0.95)}


def test_the_factor_is_on_the_first_turn_only():
    batch = SessionBatch(np.array([0, 2, 5]), np.zeros(5), log_ratio=np.arange(5.0))
    weighed = weigh_loggers(batch, np.array(["a", "b"]), {"a": 0.0, "b": 2.0})
    assert weighed.log_ratio is not None
    assert weighed.log_ratio == pytest.approx([-np.inf, 1, 2 + np.log(2), 3, 4])
    assert batch.log_ratio is not None
    assert batch.log_ratio[0] == 0


def test_values_by_hand():
    # Weights 1·2, 3·2 and 2·.5 on rewards 1, 0, 4: 6/9 self-normalised, 6/3 counted.
    batch = one_turn(np.array([1.0, 3.0, 2.0]), np.array([1.0, 0.0, 4.0]))
    weighed = weigh_loggers(batch, np.array(["a", "a", "b"]), {"a": 2.0, "b": 0.5})
    assert value("wis", weighed) == pytest.approx(6 / 9)
    assert value("is", weighed) == pytest.approx(6 / 3)


def test_rewards_play_no_part():
    other = replace(MIXED, reward=np.random.default_rng(0).normal(size=400))
    assert logger_weights(other, NAMES) == logger_weights(MIXED, NAMES)


def test_a_logger_that_never_acts_as_the_target_does_counts_nothing():
    # Every weight of "far" is 1/2: half of what the target does is not in its sessions.
    batch = one_turn(np.concatenate([np.full(100, 0.5), np.tile([0.5, 1.5], 150)]))
    assert logger_weights(batch, NAMES) == {"far": 0.0, "near": pytest.approx(400 / 300)}


def test_all_count_the_same_where_no_logger_covers_the_target():
    assert logger_weights(one_turn(np.full(400, 0.5)), NAMES) == {"far": 1.0, "near": 1.0}


def test_few_sessions_count_as_little_as_the_least_of_the_others():
    names = np.repeat(["far", "near", "few"], [100, 291, 9])
    found = logger_weights(MIXED, names)
    total = 80 + 291 + 0.8 * 9
    assert found["few"] == found["far"] == pytest.approx(0.8 * 400 / total)
    assert logger_weights(MIXED, np.repeat([f"p{i}" for i in range(10)], 40)) == {
        f"p{i}": 1.0 for i in range(10)
    }


def test_one_logger_counts_once():
    assert logger_weights(MIXED, np.full(400, "only")) == {"only": 1.0}


def two_loggers(rng: np.random.Generator) -> tuple[SessionBatch, np.ndarray]:
    """Target acts 1 w.p. .9 (reward 1, else 0; value .9); loggers do so w.p. .8 and .02, 200 sessions each."""
    act = np.concatenate([rng.random(200) < 0.8, rng.random(200) < 0.02])
    logged = np.repeat([0.8, 0.02], 200)
    weights = np.where(act, 0.9 / logged, 0.1 / (1 - logged))
    noise = rng.normal(0, 0.5, 400)
    return one_turn(weights, act + noise), np.repeat(["near", "far"], 200)


def test_weighing_pays():
    rng, plain, weighed = np.random.default_rng(0), [], []
    for _ in range(200):
        batch, names = two_loggers(rng)
        plain.append(value("wis", batch) - 0.9)
        weighed.append(value("wis", weigh_loggers(batch, names, logger_weights(batch, names))) - 0.9)
    # Standard errors of a mean of 200 are below .003 and .009; the errors themselves differ by more than half.
    assert abs(np.mean(weighed)) < 0.02
    assert np.std(weighed) < 0.5 * np.std(plain)


def test_a_verdict_may_become_an_estimate():
    batch, names = two_loggers(np.random.default_rng(1))
    weighed = weigh_loggers(batch, names, logger_weights(batch, names))
    wis = get_estimator("wis")
    assert evaluate_estimator(wis, batch, resamples=200).verdict == "bounds only"
    found = evaluate_estimator(wis, weighed, resamples=200)
    assert found.verdict == "estimate"
    assert found.interval.contains(0.9)


def test_equal_starts_are_alike_and_others_are_not():
    """An AUC of .55 or three standard errors by chance: below 1 of 300 false alarms per pair of policies."""
    rng = np.random.default_rng(0)
    loggers = np.repeat(["a", "b"], 300)
    alike = [starts_differ(rng.normal(size=(600, 8)), loggers, seed=i) for i in range(20)]
    assert alike == [None] * 20
    moved = rng.normal(size=(600, 8)) + 0.6 * (loggers == "b")[:, None]
    assert starts_differ(moved, loggers) == "a"
    few = np.where(np.arange(600) < 20, "few", "many")
    assert starts_differ(moved, few) is None
