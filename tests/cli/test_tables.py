"""Tables that fit a terminal."""

import datetime as dt
import io

from rich.console import Console

from preplay.cli._tables import MAIN, estimates_table
from preplay.report import EvaluationReport, PolicyResult, Truth
from tests.pipeline.test_headline import estimate


def printed(names: list[str]) -> str:
    estimates = [estimate(name, 0.5) for name in names]
    policy = PolicyResult(name="a", headline=estimates[0], estimates=estimates, truth=Truth(value=0.25))
    when = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    report = EvaluationReport(
        title="t", dataset="d", created=when, seed=0, gamma=1, horizon=3, policies=[policy]
    )
    output = io.StringIO()
    Console(width=80, file=output).print(estimates_table(report))
    return output.getvalue()


def test_many_estimators_are_cut_to_the_main_ones():
    text = printed([*MAIN, "wpdis", "pdis"])
    assert all(name in text for name in MAIN)
    assert "pdis" not in text
    assert text.count("+0.50") == len(MAIN)
    assert "+0.25" in text


def test_few_estimators_are_all_shown():
    assert "wpdis" in printed(["wpdis", "model.dm"])
