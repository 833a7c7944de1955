"""Which number leads, and when nothing is said."""

import pytest

from preplay.estimators import Estimate, Interval
from preplay.pipeline._headline import ModelEvidence, choose_headline

GOOD = ModelEvidence(bias=0.0, beyond=0.05, spread=1.0)


def estimate(name: str, value: float, error: float = 0.03) -> Estimate:
    return Estimate(
        policy="p",
        estimator=f"{name}/1",
        value=value,
        raw_value=value,
        standard_error=error,
        interval=Interval(low=value - 2 * error, high=value + 2 * error, level=0.95, method="bootstrap"),
        n_sessions=100,
        n_turns=700,
        verdict="estimate",
        reason="",
    )


def without_propensities(model: float, fqe: float, evidence: ModelEvidence = GOOD) -> Estimate:
    found = {"model.dm": estimate("model.dm", model), "fqe.dm": estimate("fqe.dm", fqe)}
    return choose_headline(found, evidence, 0.95)


def test_doubly_robust_leads_where_propensities_exist():
    found = {name: estimate(name, 0.1) for name in ("model.dm", "fqe.dm", "model.wdr")}
    assert choose_headline(found, GOOD, 0.95) == found["model.wdr"]


def test_without_propensities_bounds_hold_both_models_apart():
    # Half the gap is .04, the sampling error .03: half width 1.96 * sqrt(.04^2 + .03^2) = 1.96 * .05.
    headline = without_propensities(0.34, 0.26)
    assert headline.verdict == "bounds only"
    assert headline.value == pytest.approx(0.30)
    assert headline.interval.high == pytest.approx(0.30 + 1.959964 * 0.05, abs=1e-6)
    assert headline.epistemic_error == pytest.approx(0.04)


def test_the_models_bias_on_the_logs_widens_the_bounds():
    headline = without_propensities(0.3, 0.3, ModelEvidence(bias=0.04, beyond=0.05, spread=1.0))
    assert headline.interval.width == pytest.approx(2 * 1.959964 * 0.05, abs=1e-6)


def test_off_the_logs_nothing_is_said():
    headline = without_propensities(0.3, 0.3, ModelEvidence(bias=0.0, beyond=0.4, spread=1.0))
    assert (headline.verdict, headline.value) == ("not identified", None)
    assert headline.reason == "40% of what the policy does lies outside what the logs show."


def test_disagreement_as_wide_as_the_returns_is_refused():
    headline = without_propensities(0.9, -0.9)
    assert headline.verdict == "not identified"
    assert "disagree" in headline.reason
