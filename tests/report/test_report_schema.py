"""result.json survives writing and reading, matches its JSON schema and refuses what makes no sense."""

import json
import math

import jsonschema
import numpy as np
import pytest
from pydantic import ValidationError
from sample_report import bounded, full_report, interval, policy, refused, report

from preplay.errors import PreplayError
from preplay.report import DriftCurve, Support, json_schema, read_report, write_report


def test_round_trip_through_the_folder(tmp_path):
    original = full_report()
    page = write_report(original, tmp_path / "new" / "folder")
    assert page.name == "report.html"
    assert page.read_text().startswith("<!doctype html>")
    assert read_report(page.parent) == original


def test_json_matches_the_schema():
    jsonschema.validate(json.loads(full_report().model_dump_json()), json_schema())


def test_not_a_number_and_infinity_become_null():
    assert DriftCurve(snap_distance=np.array([1.0, np.nan])).snap_distance == [1.0, None]
    card = report([], data_card={"mean": np.float64("nan"), "lengths": np.arange(2), 3: (True,)}).data_card
    assert card == {"mean": None, "lengths": [0, 1], "3": [True]}


def test_the_headline_number_is_withheld_when_not_identified():
    headline = refused("french-speaking").headline
    assert (headline.value, headline.raw_value, headline.standard_error) == (None, None, None)
    assert (headline.interval.low, headline.interval.high) == (-math.inf, math.inf)
    assert headline.reason.startswith("62 %")
    # 0.26 - 1.96 * 0.19 = -0.1124
    assert bounded("patient-loop").headline.interval.low == pytest.approx(-0.1124)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: report([], schema_version="5"), "schema_version"),
        (lambda: report([], horizons=3), "horizons"),
        (lambda: report([], created="2025-03-14T09:26:00"), "timezone"),
        (lambda: Support(share_beyond=62, radius=1), "share_beyond"),
    ],
)
def test_nonsense_is_refused(make, message):
    with pytest.raises(ValidationError, match=message):
        make()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "Invalid JSON"),
        (b'{"schema_version": "5"}', "schema_version: Input should be '1', '2', '3' or '4'"),
        (b'\xff\xfe{"title"', "Invalid JSON"),
    ],
)
def test_damaged_result_is_not_read(tmp_path, content, message):
    (tmp_path / "result.json").write_bytes(content)
    with pytest.raises(PreplayError, match=message):
        read_report(tmp_path)


def test_missing_result_says_what_to_do(tmp_path):
    with pytest.raises(PreplayError, match="preplay evaluate"):
        read_report(tmp_path)


def test_logged_mean_weights_policies_by_sessions():
    # (612 * 0.214 - 388 * 0.035) / 1000 = 0.117388
    assert report([policy("a", 0.1)]).logged_mean == pytest.approx(0.117388)
    assert report([], behavior=[]).logged_mean is None


def test_unbounded_interval_survives(tmp_path):
    wide = policy("a", 0.1)
    headline = wide.headline.model_copy(update={"interval": interval(-math.inf, 0.3)})
    original = report([policy("a", 0.1, headline=headline)])
    write_report(original, tmp_path)
    assert (
        json.loads((tmp_path / "result.json").read_text())["policies"][0]["headline"]["interval"]["low"]
        is None
    )
    assert read_report(tmp_path) == original
