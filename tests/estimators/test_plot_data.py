"""Numbers behind the plots survive JSON and say the same as the estimates."""

import json

import numpy as np
import pytest
from benchmarks._known_problems import stop_go, two_sessions

from preplay.estimators import (
    ReturnDistribution,
    SessionBatch,
    calibration,
    cdf_curve,
    clip_curve,
    ess_per_step,
    evaluate_estimator,
    forest,
    get_estimator,
    reliability,
    weight_histogram,
)

WPDIS = get_estimator("wpdis")


def test_forest_withholds_what_the_verdict_withholds():
    good = evaluate_estimator(WPDIS, stop_go(500, np.random.default_rng(0)), policy="new", resamples=200)
    unsupported = SessionBatch([0, 1, 2], [1.0, 1.0], 1.0, log_ratio=[-np.inf, -np.inf])
    bad = evaluate_estimator(WPDIS, unsupported, policy="far", resamples=200)
    rows = forest([good, bad])
    assert (rows[0].label, rows[0].value) == ("new", good.value)
    assert (rows[1].value, rows[1].low, rows[1].verdict) == (None, None, "not identified")
    json.dumps([r.model_dump() for r in rows], allow_nan=False)


def test_weights_per_step_and_clip():
    batch = two_sessions()
    histogram = weight_histogram(WPDIS, batch, bins=4)
    assert sum(histogram.counts) == 2
    assert histogram.edges[0] == pytest.approx(np.log10(0.214045), abs=1e-5)
    assert ess_per_step(WPDIS, batch).y[0] == pytest.approx(1.97560976)
    curve = clip_curve(WPDIS, batch)
    assert curve.x[-1] is None
    assert curve.y[-1] == pytest.approx(-1.3949796372969703)


def test_zero_weights_are_counted_apart():
    batch = SessionBatch([0, 1, 2], [1.0, 1.0], 1.0, log_ratio=[-np.inf, 0.0])
    assert weight_histogram(WPDIS, batch).zero_weights == 1
    nothing = SessionBatch([0, 1], [1.0], 1.0, log_ratio=[-np.inf])
    assert weight_histogram(WPDIS, nothing).counts == []


def test_cdf_and_reliability():
    curve = cdf_curve(ReturnDistribution.of(stop_go(400, np.random.default_rng(1))), points=5)
    assert curve.y[-1] == pytest.approx(1)
    assert all(a <= b <= c for a, b, c in zip(curve.low, curve.y, curve.high, strict=True))
    points = reliability(calibration(np.tile([0.8, 0.2], (3, 1)), np.array([0, 1, 0])))
    assert points.x == pytest.approx([0.2, 0.8])
