"""result.json survives writing and reading, matches its JSON schema and refuses what makes no sense."""

import json

import jsonschema
import numpy as np
import pytest
from pydantic import ValidationError
from sample_report import bounded, full_report, policy, refused, report

from preplay.report import DriftCurve, Estimate, EvaluationReport, Interval, json_schema


def test_round_trip():
    original = full_report()
    assert EvaluationReport.model_validate_json(original.model_dump_json()) == original


def test_json_matches_the_schema():
    jsonschema.validate(json.loads(full_report().model_dump_json()), json_schema())


def test_not_a_number_and_infinity_become_null():
    interval = Interval(low=-np.inf, high=np.float32(0.5))
    assert json.loads(interval.model_dump_json()) == {"low": None, "high": 0.5, "level": 0.95}
    assert DriftCurve(snap_distance=np.array([1.0, np.nan])).snap_distance == [1.0, None]
    estimate = Estimate(
        estimator="pdis@1", value=float("nan"), diagnostics={"ess": np.float64("nan"), "k": (1,)}
    )
    assert (estimate.value, estimate.diagnostics) == (None, {"ess": None, "k": [1]})


def test_the_headline_number_is_withheld_when_not_identified():
    result = refused("french-speaking")
    assert (result.headline.value, result.headline.standard_error, result.headline.interval) == (None,) * 3
    assert result.headline.reason.startswith("62 %")
    assert bounded("patient-loop").headline.interval == Interval(low=-0.12, high=0.64)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Interval(low=0.3, high=0.2), "interval low 0.3 is above high 0.2"),
        (lambda: Estimate(estimator="is@1", verdict="bounds only"), "needs a reason"),
        (lambda: report([], schema_version="2"), "schema_version"),
        (lambda: report([], horizons=3), "horizons"),
    ],
)
def test_nonsense_is_refused(make, message):
    with pytest.raises(ValidationError, match=message):
        make()


def test_logged_mean_weights_policies_by_sessions():
    # (612 * 0.214 - 388 * 0.035) / 1000 = 0.117388
    assert report([policy("a", 0.1)]).logged_mean == pytest.approx(0.117388)
    assert report([], behavior=[]).logged_mean is None
