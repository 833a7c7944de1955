"""The verdict says no where it must, and why."""

import numpy as np
import pytest
from benchmarks._known_problems import graph, model_win, random_batch, stop_go

from preplay.estimators import Evidence, OnPolicyCheck, SessionBatch, evaluate_estimator, get_estimator
from preplay.estimators._results import Interval


def judge(name: str, batch: SessionBatch, **options):
    return evaluate_estimator(get_estimator(name), batch, resamples=400, **options)


def test_a_well_supported_target_is_an_estimate():
    estimate = judge("wpdis", stop_go(1000, np.random.default_rng(0)))
    assert estimate.verdict == "estimate"
    assert estimate.value == pytest.approx(0.9, abs=0.06)
    assert estimate.fix is None


def test_an_action_never_logged_is_named_and_withheld():
    log_ratio = np.full(800, np.log(0.5))  # the target does something else half of the time
    batch = SessionBatch(np.arange(801), np.ones(800), 1.0, log_ratio=log_ratio)
    for name in ("wis", "wpdis", "pdis", "is"):
        estimate = judge(name, batch)
        assert estimate.verdict == "not identified", name
        assert estimate.value is None
        assert "50%" in estimate.reason
        assert "Collect" in estimate.fix


def test_few_effective_sessions_leave_bounds():
    estimate = judge("wis", graph(300, np.random.default_rng(1), steps=8, p_log=0.4))
    assert estimate.verdict == "bounds only"
    assert estimate.value is not None


def test_twenty_steps_of_modelwin_are_not_an_estimate_by_weights():
    batch = model_win(500, np.random.default_rng(2))
    assert judge("wis", batch).verdict != "estimate"
    assert judge("dm", batch).verdict == "estimate"


@pytest.mark.parametrize(
    ("evidence", "kind", "words"),
    [
        (Evidence(share_beyond=0.7), "not identified", "70% of the target's actions are unlike"),
        (Evidence(share_beyond=0.3), "bounds only", "30% of the target's actions are far"),
        (Evidence(share_beyond=0.06), "estimate", ""),
        (Evidence(unsupported_cells=0.5), "not identified", "50% of the target's \\(stage"),
        (Evidence(shift_auc=0.93), "not identified", "AUC 0.93"),
        (Evidence(fqe_converged=False), "bounds only", "did not settle"),
        (Evidence(propensity_error=0.2), "bounds only", "off by 20%"),
        (
            Evidence(
                on_policy=OnPolicyCheck(
                    1.0, 0.2, 0.8, Interval(low=0.5, high=1.1, level=0.95, method="x"), False
                )
            ),
            "bounds only",
            "at 1, but its sessions returned 0.2",
        ),
    ],
)
def test_evidence_decides_where_there_are_no_weights(evidence, kind, words):
    import re

    estimate = judge("dm", model_win(500, np.random.default_rng(3)), evidence=evidence)
    assert estimate.verdict == kind
    assert re.search(words, estimate.reason)


def test_ensemble_spread_widens_the_interval():
    batch = model_win(400, np.random.default_rng(4))
    members = [
        SessionBatch(batch.offsets, batch.reward, 1.0, q=batch.q, v=batch.v + shift)
        for shift in (-0.5, 0.0, 0.5)
    ]
    plain, with_members = judge("dm", batch), judge("dm", batch, members=members)
    assert with_members.epistemic_error == pytest.approx(0.5)
    assert with_members.standard_error == pytest.approx(np.hypot(plain.standard_error, 0.5))
    ratio = with_members.standard_error / plain.standard_error
    if plain.interval.width > 0:
        assert with_members.interval.width == pytest.approx(plain.interval.width * ratio)


@pytest.mark.parametrize("method", ["bootstrap", "student-t", "empirical-likelihood"])
def test_interval_methods_agree_on_large_logs(method):
    batch = random_batch(np.random.default_rng(5), 3000, 4, spread=0.2)
    estimate = judge("wpdis", batch, interval=method)
    assert estimate.interval.method == method
    reference = judge("wpdis", batch).interval
    assert estimate.interval.low == pytest.approx(reference.low, abs=0.15 * reference.width)
    assert estimate.interval.high == pytest.approx(reference.high, abs=0.15 * reference.width)
