"""Numbers as text and positions of marks, by hand."""

import math

import pytest
from sample_report import bounded, full_report, interval, policy, report

from preplay.report._numbers import ValueFormat, brief, format_for, plain, share
from preplay.report._plots import axis_for, forest_axis, spark_path


@pytest.mark.parametrize(
    ("number", "text"),
    [(0.41234, "0.412"), (12.345, "12.3"), (-0.02, "−0.0200"), (6183, "6\u202f183"), (0.0, "0"), (2e-5, "0.0000200"),
     (1234.5, "1234"), (math.nan, "–"), (None, "–")],
)  # fmt: skip
def test_plain(number, text):
    assert plain(number) == text


def test_brief_leaves_settings_as_they_were_given():
    assert [brief(v) for v in (1000, 0.002, 1e-5, -0.5, 0.123456)] == [
        "1\u202f000",
        "0.002",
        "1e−05",
        "−0.5",
        "0.1235",
    ]


def test_value_format():
    fmt = ValueFormat(2)
    assert [fmt.value(v) for v in (0.555, -0.3, -0.001, None)] == ["0.56", "−0.30", "0.00", "–"]
    assert [fmt.difference(v) for v in (0.1, -0.1, 0.001, None)] == ["+0.10", "−0.10", "0.00", "–"]
    ends = [(0.1, 0.2), (-math.inf, 0.2), (0.1, math.inf), (-math.inf, math.inf)]
    texts = ["0.10 to 0.20", "at most 0.20", "at least 0.10", "unbounded"]
    assert [fmt.interval(interval(*pair)) for pair in ends] == texts
    assert share(0.619) == "62\u00a0%"


@pytest.mark.parametrize(("scale", "decimals"), [(0.01, 4), (1, 2), (100, 0)])
def test_decimals_follow_the_spread(scale, decimals):
    # the values and intervals of 0.2 and 0.9 span 0.97 - 0.15 = 0.82: 2 - floor(log10(0.82 / 0.3)) = 2
    policies = [policy("a", 0.2), policy("b", 0.9)]
    scaled = [
        p.model_copy(update={"headline": p.headline.model_copy(update={
            "value": p.headline.value * scale,
            "interval": interval(p.headline.interval.low * scale, p.headline.interval.high * scale),
        })})
        for p in policies
    ]  # fmt: skip
    assert format_for(report(scaled, behavior=[])).decimals == decimals


def test_axis_has_round_ticks_and_room():
    axis = axis_for([0.0, 1.0])
    # room 0.06 on both sides; 1.12 / 6 = 0.187 rounds up to a step of 0.2
    assert (axis.low, axis.high) == (-0.06, 1.06)
    assert axis.ticks == pytest.approx((0.0, 0.2, 0.4, 0.6, 0.8, 1.0))
    assert axis.decimals == 1
    # (0.5 + 0.06) / 1.12 = 50 %; beyond the ends it stays at the ends
    assert [axis.at(v) for v in (0.5, -7, math.inf)] == [50.0, 0.0, 100.0]
    assert axis_for([3.0]).low == 1.5
    assert axis_for([]).ticks


def test_wide_bounds_do_not_squeeze_the_estimates():
    wide = bounded("wide")
    headline = wide.headline.model_copy(update={"interval": interval(-900.0, math.inf)})
    narrow = [policy("a", 0.0), policy("b", 1.0)]
    axis = forest_axis(report([*narrow, policy("wide", 0.5, headline=headline)], behavior=[]))
    # estimates span 0.01 ± 0.061 to 1.01 ± 0.061: 1.12; the bound adds as much below, then 6 % of room
    assert axis.low == pytest.approx(-0.05076 - 1.12152 - 0.06 * 2 * 1.12152)
    assert axis.high < 1.3


def test_forest_axis_covers_all_marks():
    axis = forest_axis(full_report())
    assert axis.low < -0.41 < 0.63 < axis.high


def test_forest_axis_shows_whole_bounds_where_there_is_nothing_else():
    only = bounded("only")
    axis = forest_axis(report([only]))
    assert axis.low < only.headline.interval.low
    assert axis.high > only.headline.interval.high


def test_spark_breaks_where_a_value_is_missing():
    # x = 0, 50, 100 for three turns; y = 40 * (1 - 0.95 * v / top)
    assert spark_path([2.0, 1.0, 0.0], 2.0, 3) == "M0.0 2.0L50.0 21.0L100.0 40.0"
    assert spark_path([2.0, None, 0.0], 2.0, 3) == "M0.0 2.0M100.0 40.0"
