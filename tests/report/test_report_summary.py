"""The sentence and the terminal table say what the numbers say, and no more."""

import pytest
from rich.console import Console
from sample_report import bounded, estimate, full_report, interval, policy, refused, report

from preplay.report import compare_table, summary_sentence


def judged(name, value, low, high, truth=None):
    """A policy whose headline is exactly this."""
    headline = estimate(name, "wdr/1", value, 0.1).model_copy(update={"interval": interval(low, high)})
    return policy(name, value, truth, headline=headline)


LOGGED = "the 0.12 that the logged sessions earned"
WHY = "62 % of its actions have no similar action in the logs, so nothing says what they lead to."
REFUSAL = f"cannot be judged: {WHY}"


@pytest.mark.parametrize(
    ("policies", "sentence"),
    [
        ([], "No policy was evaluated."),
        (
            [judged("a", 0.5, 0.2, 0.8)],
            f"“a” is worth 0.50 a session (95\u00a0% interval 0.20 to 0.80), more than {LOGGED}.",
        ),
        (
            [judged("a", -0.5, -0.9, -0.1)],
            f"“a” is worth −0.50 a session (95\u00a0% interval −0.90 to −0.10), less than {LOGGED}.",
        ),
        (
            [judged("a", 0.2, 0.1, 0.3), judged("b", 0.9, 0.8, 1.2)],
            "“b” is the best of 2 policies: 0.90 a session (95\u00a0% interval 0.80 to 1.20), "
            f"more than {LOGGED}.",
        ),
        (
            [judged("a", 0.2, 0.1, 0.3), judged("b", 0.9, -0.1, 1.2)],
            "“b” comes out highest of 2 policies: 0.90 a session (95\u00a0% interval −0.10 to 1.20), "
            f"not clearly different from {LOGGED}. “a” cannot be told apart from it: the intervals overlap.",
        ),
        (
            [judged(name, 0.5, 0.3, 0.8) for name in "abc"],
            "No best policy can be named: all intervals overlap that of the highest. “a” comes out highest of "
            f"3 policies: 0.50 a session (95\u00a0% interval 0.30 to 0.80), more than {LOGGED}.",
        ),
        ([refused("c")], f"“c” {REFUSAL}"),
        (
            [refused("c"), refused("d")],
            f"None of the 2 policies can be given a value from these logs. “c” {REFUSAL} “d” {REFUSAL}",
        ),
        (
            [refused("c"), judged("a", 0.5, 0.2, 0.8), bounded("b")],
            f"“a” is worth 0.50 a session (95\u00a0% interval 0.20 to 0.80), more than {LOGGED}. "
            "For “b” only bounds are known (−0.11 to 0.63): Only 12.3 of 1000 sessions carry the weight. "
            f"“c” {REFUSAL}",
        ),
        (
            [refused(name) for name in ("c", "d", "e", "f", "g")],
            "None of the 5 policies can be given a value from these logs. “c”, “d” and 3 others cannot be judged, "
            f"the first because: {WHY}",
        ),
    ],
)
def test_sentence(policies, sentence):
    assert summary_sentence(report(policies)) == sentence


@pytest.mark.parametrize(
    ("truths", "said"),
    [
        # errors 0.1 and 0.1; 0.4 lies in 0.4 to 0.6, 0.2 does not lie in 0.25 to 0.35
        ((0.4, 0.2), "it is indeed the best, the estimates are off by 0.10 on average, and 1 of 2 intervals"),
        # errors 0.3 and 0.4
        (
            (0.2, 0.7),
            "“b” is the best of them, the estimates are off by 0.35 on average, and 0 of 2 intervals",
        ),
    ],
)
def test_sentence_with_truth(truths, said):
    policies = [judged("a", 0.5, 0.4, 0.6, truths[0]), judged("b", 0.3, 0.25, 0.35, truths[1])]
    text = summary_sentence(report(policies, behavior=[]))
    assert text.endswith(f"The truth is known: {said} contain it.")


def test_no_word_of_truth_when_it_is_known_only_in_part():
    policies = [judged("a", 0.5, 0.4, 0.6, truth=0.5), judged("b", 0.3, 0.2, 0.4)]
    assert "truth" not in summary_sentence(report(policies))


def rendered(of, width=80):
    console = Console(width=width, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(compare_table(of))
    return [line.rstrip() for line in console.export_text().splitlines()]


def test_table_fits_a_terminal_and_ranks():
    lines = rendered(full_report())
    rows = [line.split() for line in lines if line.startswith("  ") and "–" not in line and " to " in line]
    assert rows[0] == ["empathetic", "0.56", "0.50", "to", "0.62", "0.53", "+0.03", "estimate"]
    assert [row[0] for row in rows] == [
        "empathetic", "step-by-step", "diagnose-first", "concise", "upsell", "always-escalate",
    ]  # fmt: skip
    assert max(map(len, lines)) <= 80
    assert "  patient-loop          –    −0.11 to 0.63    0.22       –   bounds only" in lines
    assert "  french-speaking       –                –    0.47       –   not identified" in lines


def test_table_without_truth_and_with_markup_in_a_name():
    lines = rendered(report([policy("[red]x[/red]", 0.5)]))
    assert "truth" not in lines[1]
    assert any("[red]x[/red]" in line for line in lines)
