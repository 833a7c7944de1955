"""Estimates as JSON."""

import json

import jsonschema
import numpy as np
from benchmarks._known_problems import random_batch

from preplay.estimators import Estimate, Interval, evaluate_estimator, get_estimator


def test_json_round_trip_and_schema():
    batch = random_batch(np.random.default_rng(0), 50, 5)
    for batch_ in (batch, batch.select(np.array([0]))):
        estimate = evaluate_estimator(get_estimator("wdr"), batch_, policy="new", resamples=200)
        text = estimate.model_dump_json()
        jsonschema.validate(json.loads(text), Estimate.model_json_schema(mode="serialization"))
        assert Estimate.model_validate_json(text) == estimate
        assert estimate.estimator == "wdr/1"


def test_an_open_end_is_null():
    interval = Interval.unbounded(0.95, "bootstrap")
    assert json.loads(interval.model_dump_json()) == {
        "low": None,
        "high": None,
        "level": 0.95,
        "method": "bootstrap",
    }
    assert interval.model_dump(mode="json")["low"] is None
    assert interval.contains(1e300)
