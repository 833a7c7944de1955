"""Policies against each other on one log."""

import numpy as np
import pytest
from benchmarks._known_problems import stop_go

from preplay.errors import PreplayError
from preplay.estimators import SessionBatch, compare_policies, get_estimator, holm, simultaneous_intervals

WPDIS = get_estimator("wpdis")


def targets(n: int, seed: int, *ps: float) -> dict[str, SessionBatch]:
    """The same stop/go log under several targets."""
    log = stop_go(n, np.random.default_rng(seed))
    go = log.log_ratio > 0
    first = np.zeros(log.n_turns, bool)
    first[log.offsets[:-1]] = True
    return {
        f"p{p}": SessionBatch(
            log.offsets,
            log.reward,
            1.0,
            log_ratio=np.where(first, np.where(go, np.log(p / 0.5), np.log((1 - p) / 0.5)), 0.0),
        )
        for p in ps
    }


def test_difference_of_close_targets_is_narrower_than_either_interval():
    """Targets .80 and .82 share nearly all their noise: the paired error is a fraction of one's own."""
    batches = targets(500, 5, 0.80, 0.82)
    (pair,) = compare_policies(WPDIS, batches, resamples=2000)
    alone = WPDIS.influence(batches["p0.8"]).std() / np.sqrt(500)
    assert pair.better == "p0.82"
    assert pair.difference == pytest.approx(0.02, abs=0.004)
    assert pair.standard_error < alone / 5
    assert pair.interval.contains(0.02)


def test_all_pairs_or_against_a_baseline():
    batches = targets(400, 1, 0.3, 0.5, 0.9)
    assert len(compare_policies(WPDIS, batches, resamples=500)) == 3
    versus = compare_policies(WPDIS, batches, baseline="p0.5", resamples=500)
    assert [(c.better, c.other) for c in versus] == [("p0.5", "p0.3"), ("p0.9", "p0.5")]
    assert all(c.p_value < 0.01 for c in versus)
    assert all(c.simultaneous.width > c.interval.width * 0.95 for c in versus)


def test_identical_targets_do_not_differ():
    batches = targets(300, 2, 0.7)
    pair = compare_policies(WPDIS, {"a": batches["p0.7"], "b": batches["p0.7"]}, resamples=300)[0]
    assert pair.difference == 0
    assert pair.p_value == 1
    assert (pair.interval.low, pair.interval.high) == (0, 0)


def test_holm_by_hand():
    """Sorted .01, .02, .04 times 3, 2, 1: .03, .04, .04."""
    assert holm(np.array([0.04, 0.01, 0.02])) == pytest.approx([0.04, 0.03, 0.04])
    assert holm(np.array([0.9, 0.8])) == pytest.approx([1.0, 1.0])


def test_simultaneous_intervals_hold_together():
    """20 means at once: single 95 % intervals all hold in about 36 % of the logs, simultaneous ones in 95 %."""
    rng, single, together = np.random.default_rng(3), 0, 0
    for _ in range(200):
        values = rng.normal(size=20)
        draws = values[:, None] + rng.normal(size=(20, 1000))
        wide = simultaneous_intervals(values, draws)
        together += all(i.contains(0) for i in wide)
        single += bool((abs(values) < 1.96).all())
    assert together >= 0.9 * 200
    assert single < 0.6 * 200


def test_other_sessions_are_refused():
    a, b = targets(50, 4, 0.7), targets(60, 4, 0.7)
    with pytest.raises(PreplayError, match="other sessions"):
        compare_policies(WPDIS, {"a": a["p0.7"], "b": b["p0.7"]})
    with pytest.raises(PreplayError, match="at least two"):
        compare_policies(WPDIS, a)
