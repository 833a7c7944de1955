"""Charts of weights, clipping, returns and propensities: positions and sentences by hand."""

import math

import pytest
from _printed import printed
from sample_report import (
    PROPENSITIES,
    bounded,
    difference,
    full_report,
    interval,
    policy,
    refused,
    report,
    weights,
)

from preplay.report import ClippedValue, ReturnCurve, Weights, differences_table, summary_sentence
from preplay.report._charts import (
    clip_chart,
    ess_chart,
    policy_charts,
    reliability_chart,
    return_chart,
    weight_chart,
)
from preplay.report._differences import against_the_highest, sentence
from preplay.report._numbers import ValueFormat, p_value

FMT = ValueFormat(2)


def test_weights_by_hand():
    # Axis from 10^-2 to 10^1.58: 3.58 decades; the second bar runs from 1 / 3.58 to 2 / 3.58 and is the highest.
    chart = weight_chart(weights(0.5))
    bars, one = chart.shapes
    assert bars.path.startswith("M0.0 100V73.8H27.93V100ZM27.93 100V0.0H55.87V100Z")
    assert one.path == "M55.87 0V100"
    assert [tick.text for tick in chart.x] == ["0.01", "0.1", "1", "10"]
    # 10^1.58 = 38.0; 130 of 870 + 130 sessions have no weight
    assert chart.sentence == (
        "The heaviest of 1\u202f000 sessions counts 38 times. 13\u00a0% count nothing: the policy would never have "
        "acted so."
    )


def test_weights_that_are_all_one():
    chart = weight_chart(Weights(log10_edges=[-0.5, 0.0, 0.02], counts=[0, 60]))
    assert chart.sentence == "The heaviest of 60 sessions counts no more than once."


def test_whose_sessions_count():
    one = Weights(log10_edges=[-0.5, 0.0, 0.02], counts=[0, 60])

    def said(**changes: object) -> str:
        return weight_chart(one.model_copy(update=changes)).sentence.partition("once.")[2]

    assert (
        said(loggers={"a": 0.0, "b": 1.5})
        == " By who logged it, a session's weight is multiplied by: b 1.5, a 0."
    )
    left_out = one.model_copy(update={"loggers": {"a": 0.0, "b": 1.5}, "zero_weights": 20})
    told = "count nothing: the policy would never have acted so, or who logged them leaves out much of what it does."
    assert told in weight_chart(left_out).sentence
    many = {name: float(i) for i, name in enumerate("abcdef")}
    assert said(loggers=many).endswith("multiplied by: f 5, e 4, d 3, c 2, others at most 1.")
    assert said(loggers={"a": 1.0, "b": 1.0}) == ""
    odd = said(loggers={"a": 1.0, "b": 1.0}, starts_differ="a")
    assert odd == " All logged policies count the same: sessions of a start in other states."


@pytest.mark.parametrize(
    ("series", "said"),
    [
        (
            [901.0, 400.0, 184.0],
            "From 901 effective sessions at turn 1 to 184 at turn 3: every turn rests on many",
        ),
        (
            [901.0, 80.0, 60.0],
            "From 901 effective sessions at turn 1 to 60 at turn 3: later turns rest on few",
        ),
        ([40.0, 29.0], "From 40 effective sessions at turn 1 to 29 at turn 2: later turns rest on few"),
    ],
)
def test_effective_sessions(series, said):
    chart = ess_chart(series)
    assert chart.sentence.startswith(said)
    assert chart.shapes[0].path.startswith("M0.0 0.0L")


def clipped(values: dict[float, float], low: float, high: float):
    found = Weights(clips=[ClippedValue(clip=c, value=v, clipped_share=0.25) for c, v in values.items()])
    of = policy("a", 0.5)
    of = of.model_copy(update={"headline": of.headline.model_copy(update={"interval": interval(low, high)})})
    return clip_chart(found, of, FMT)


def test_clipping_that_matters_and_that_does_not():
    values = {1: 0.2, 10: 0.5, math.inf: 0.6}
    assert clipped(values, 0.1, 0.9).sentence == (
        "Cutting weights above 1 (25\u00a0% of turns) would move 0.60 to 0.20, inside the interval: the estimate "
        "does not hang on a few heavy sessions."
    )
    assert clipped(values, 0.3, 0.9).sentence.endswith("outside the interval: heavy sessions matter.")
    assert "changes nothing" in clipped({1: 0.6, math.inf: 0.6}, 0, 1).sentence
    assert clipped({1: 0.2, math.inf: math.nan}, 0, 1).sentence == "Without clipping there is no value."


def test_clipping_by_hand():
    # Values and ends span 0.1 to 0.9, 6 % of room on both sides: 0.052 to 0.948. 0.5 lies in the middle.
    chart = clipped({1: 0.5, math.inf: 0.5}, 0.1, 0.9)
    assert [tick.text for tick in chart.x] == ["1", "∞"]
    area, curve, points = (shape.path for shape in chart.shapes)
    assert curve == "M25.0 50.0L75.0 50.0"
    assert points == "M25.0 50.0h0M75.0 50.0h0"
    # (0.9 - 0.052) / 0.896 = 94.64 %
    assert area == "M0 5.36H100V94.64H0Z"


def test_returns_by_hand():
    # At 0.0 a quarter, at 1.0 half of the sessions: the median is 1, a tenth is reached at 0.
    curve = ReturnCurve(x=[0.0, 1.0, 2.0], cdf=[0.25, 0.5, 1.0], low=[0.0, 0.4, 0.9], high=[0.3, 0.6, 1.0])
    chart = return_chart(curve, None, FMT)
    assert chart.sentence == "Half of the sessions would return at most 1.00, a tenth at most 0.00."
    band, line = chart.shapes
    assert line.path == "M0.0 75.0L50.0 50.0L100.0 0.0"
    assert band.path == "M0.0 70.0L50.0 40.0L100.0 0.0L100.0 10.0L50.0 60.0L0.0 100.0Z"
    beside = return_chart(curve, ReturnCurve(x=[0.0, 1.0], cdf=[0.5, 1.0]), FMT)
    assert beside.sentence.endswith("a tenth at most 0.00 (logged sessions: 0.00 and 0.00).")
    assert beside.shapes[-1].kind == "reference"


def test_reliability_by_hand():
    chart = reliability_chart(PROPENSITIES)
    assert chart.shapes[1].path == "M5.0 96.0L35.0 61.0L65.0 38.0L92.0 5.0"
    # 1 - 0.42 / 0.84 = 50 %
    assert (
        "(one of 8 groups) is predicted with 50\u00a0% less squared error than without it" in chart.sentence
    )
    assert chart.sentence.endswith("off by 3\u00a0% on average.")


def test_only_what_is_known_is_drawn():
    full = full_report()
    titles = {p.name: [c.title for c in policy_charts(p, full, FMT)] for p in full.policies}
    assert titles["concise"] == [
        "Weights of sessions",
        "Effective sessions",
        "Clipping",
        "Returns of sessions",
    ]
    assert "Clipping" not in titles["french-speaking"]  # its number is withheld
    bare = policy("a", 0.3, weights=None, support=None, returns=None)
    assert policy_charts(bare, full, FMT) == []
    undefined = refused("b").model_copy(
        update={"returns": ReturnCurve(x=[0.0, 1.0], cdf=[math.nan, math.nan])}
    )
    assert "Returns of sessions" not in [c.title for c in policy_charts(undefined, full, FMT)]


def test_rounded_curves_keep_five_digits():
    assert ReturnCurve(x=[0.123456789, math.inf]).x == [0.12346, None]


PAIRS = [
    difference("a", "b", 0.02, 0.05, 0.3),
    difference("a", "c", 0.4, 0.1, 0.001),
    difference("b", "c", 0.38, 0.1, 0.0002),
]


def judged(**changes):
    return report([policy("a", 0.5), policy("b", 0.48), policy("c", 0.1)], **changes)


def test_differences_against_the_highest():
    found = judged(differences=PAIRS[::-1])
    assert [pair.other for pair in against_the_highest(found)] == ["b", "c"]
    # 0.02 ± 0.05 contains zero, the other two do not
    assert sentence(found).endswith("Corrected for all 3 pairs, 2 of them differ clearly.")
    assert sentence(judged(differences=PAIRS[:1])).endswith("The two policies cannot be told apart.")
    assert sentence(judged(differences=[])) == ""
    assert [p_value(v) for v in (0.0004, 0.0514, 1.0)] == ["< 0.001", "0.051", "1.000"]


def test_a_difference_from_a_policy_with_bounds_only_is_a_bound():
    policies = [policy("a", 0.5), policy("b", 0.48), bounded("c")]
    found = report(policies, differences=PAIRS)
    # of a-b, a-c and b-c only the first is between two estimates, and it contains zero
    assert sentence(found).endswith("pairs, none of 1 between policies with an estimate differ clearly.")
    rows = [line.split() for line in printed(differences_table(found)) if " to " in line]
    assert rows[1] == ["c", "–", "0.30", "to", "0.50", "–"]
    assert sentence(report([bounded(n) for n in "abc"], differences=PAIRS)).endswith(
        "Only bounds are known of each."
    )


def test_far_weights_are_written_as_powers():
    found = Weights(log10_edges=[-16.0, -8.0, 1.7], counts=[5, 5])
    # 18 powers from -16 to 1, every fifth of them
    assert [tick.text for tick in weight_chart(found).x] == ["10⁻¹⁵", "10⁻¹⁰", "10⁻⁵", "10⁰"]


def test_summary_names_ties_by_the_paired_difference():
    said = summary_sentence(judged(differences=PAIRS, behavior=[]))
    assert "“b” cannot be told apart from it: the difference may be zero." in said
    clear = [PAIRS[0].model_copy(update={"simultaneous": interval(0.01, 0.03)}), *PAIRS[1:]]
    assert summary_sentence(judged(differences=clear)).startswith("“a” is the best of 3 policies")


def test_differences_in_the_terminal():
    lines = printed(differences_table(judged(differences=PAIRS)))
    assert lines[0].strip() == "“a” minus the others"
    rows = [line.split() for line in lines if " to " in line]
    assert rows == [
        ["b", "+0.02", "−0.03", "to", "0.07", "0.300"],
        ["c", "+0.40", "0.30", "to", "0.50", "0.001"],
    ]
    assert max(map(len, lines)) <= 80
