"""Estimators against numbers derived by hand."""

import numpy as np
import pytest
from benchmarks._known_problems import TWO, graph, graph_value, model_fail, model_win, stop_go, two_sessions

from preplay.estimators import SessionBatch, get_estimator


def value(name: str, batch: SessionBatch) -> float:
    estimator = get_estimator(name)
    return estimator.value(estimator.statistics(batch))


# cumulative ratios: [1.111111, .111111, .149832, .214045], [1.388889, 1.388889, .555556]
# returns: 1.960399 and −2.970100 (γ = .99)
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("mean", -0.5048505),  # (1.960399 − 2.970100)/2
        ("is", -0.615220765993266),  # (.214045·1.960399 − .555556·2.970100)/2
        ("wis", -1.598804965625),  # the same over .214045 + .555556
        ("pdis", -0.9763699603174603),
        ("wpdis", -1.3949796372969703),  # the second session keeps .555556 in the denominator at step 3
        ("dr", 0.255344426984127),  # mean of .5224360761904764 and −.01174722222222191
        ("wdr", 0.44042269284042707),
        ("dm", -0.6),  # (.8 − 2)/2
    ],
)
def test_two_sessions(name, expected):
    assert value(name, two_sessions()) == pytest.approx(expected, abs=1e-12)


def test_two_sessions_wpdis_step_by_step():
    ratio = TWO["pi_e"] / TWO["pi_b"]
    w1, w2 = np.cumprod(ratio[:4]), np.cumprod(ratio[4:])
    w2 = np.append(w2, w2[-1])  # ended: keeps its weight
    r1, r2 = TWO["reward"][:4], np.append(TWO["reward"][4:], 0)
    by_hand = sum(0.99**t * (w1[t] * r1[t] + w2[t] * r2[t]) / (w1[t] + w2[t]) for t in range(4))
    assert value("wpdis", two_sessions()) == pytest.approx(by_hand, abs=1e-12)


def test_two_sessions_effective_size_per_step():
    stats = get_estimator("wpdis").statistics(two_sessions())
    assert stats.ess() == pytest.approx([1.97560976, 1.15898251, 1.50282055, 1.67096374], abs=1e-8)
    assert get_estimator("wis").statistics(two_sessions()).ess()[0] == pytest.approx(1.6709637413922518)
    assert stats.largest_share()[0] == pytest.approx(1.388889 / 2.5, abs=1e-6)


def test_dr_per_session_values():
    terms = get_estimator("dr").terms(two_sessions())
    assert terms.session_values() == pytest.approx([0.5224360761904764, -0.01174722222222191], abs=1e-12)


@pytest.mark.parametrize("name", ["is", "wis", "pdis", "wpdis", "dr", "wdr"])
def test_stop_go_counts_the_sessions_that_ended(name):
    """V_e = .9. A mean over survivors gives .508 (equal to V_b) or 1.0; dropped zero returns give 1.8."""
    batch = stop_go(20_000, np.random.default_rng(0))
    # sd of w·r is sqrt(.5·1.8² − .81) = .9; three standard errors at 20,000 are .019
    assert value(name, batch) == pytest.approx(0.9, abs=0.02)
    assert value("mean", batch) == pytest.approx(0.5, abs=0.015)


def test_model_fail_misleads_the_model_only():
    batch = model_fail(50_000, np.random.default_rng(1))
    # per-session variance of IS is 5.892: three standard errors are .033
    for name in ("is", "pdis", "wis", "wpdis", "dr", "wdr"):
        assert value(name, batch) == pytest.approx(-0.76, abs=0.035), name
    assert value("dm", batch) == pytest.approx(0.76, abs=0.01)
    weights = np.exp(batch.log_ratio[0::2])
    assert np.mean(weights**2) == pytest.approx(6.469697, rel=0.05)  # .88·(.12/.88)² + .12·(.88/.12)²
    assert np.var(weights * batch.reward[1::2]) == pytest.approx(5.892097, rel=0.05)


def test_model_win_favours_the_model():
    batch = model_win(5_000, np.random.default_rng(2))
    assert value("mean", batch) == pytest.approx(-0.92, abs=0.15)
    assert value("dm", batch) == pytest.approx(0.92, abs=0.15)
    assert value("wdr", batch) == pytest.approx(0.92, abs=0.5)
    # E[w²] per visit is .73·(.27/.73)² + .27·(.73/.27)² = 2.0736; after 10 visits n/ESS ≈ 1469.5
    per_visit = np.exp(2 * batch.log_ratio.reshape(5_000, 20)[:, 0::2]).mean()
    assert per_visit == pytest.approx(2.0735667, rel=0.02)
    assert get_estimator("is").statistics(batch).ess()[0] < 5_000 / 20


@pytest.mark.parametrize("slip", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
def test_graph_closed_form(slip, sparse):
    expected = graph_value(steps=4, slip=slip, sparse=sparse)
    table = {(0, 0): 2.328955, (1, 0): 1.164478, (0, 1): 0.564715, (1, 1): 0.282358}
    assert expected == pytest.approx(table[slip, sparse], abs=1e-6)
    batch = graph(40_000, np.random.default_rng(3), slip=slip, sparse=sparse)
    for name in ("is", "wis", "pdis", "wpdis"):
        assert value(name, batch) == pytest.approx(expected, abs=0.07), name


def test_graph_of_two_steps():
    assert graph_value(steps=2, slip=False, sparse=False) == pytest.approx(1.188)


@pytest.mark.parametrize(("better", "weights"), [(2.0, (0.5, 1.5)), (1.0, (1.5, 0.5))])
def test_one_step_of_rllibs_test(better, weights):
    """r ∈ {1, 2} half and half. Good policy: (3·N2 + .5·N1)/N = 1.75; bad: (1·N2 + 1.5·N1)/N = 1.25."""
    reward = np.tile([1.0, 2.0], 50)
    batch = SessionBatch(np.arange(101), reward, 0.9, log_ratio=np.log(np.tile(weights, 50)))
    expected = 1.75 if better == 2.0 else 1.25
    for name in ("is", "wis", "pdis", "wpdis"):
        assert value(name, batch) == pytest.approx(expected, abs=1e-12)


def test_three_steps_of_independent_actions():
    """π_e = (.2, .8), π_b uniform, r = a, H = 3: true 2.4 (RLlib's new stack gives 3.773 and 2.040)."""
    rng = np.random.default_rng(4)
    action = rng.integers(0, 2, 60_000 * 3)
    log_ratio = np.log(np.where(action == 1, 0.8, 0.2) / 0.5)
    batch = SessionBatch(np.arange(0, 180_001, 3), action.astype(float), 1.0, log_ratio=log_ratio)
    for name in ("is", "pdis", "wis", "wpdis"):
        assert value(name, batch) == pytest.approx(2.4, abs=0.05), name


def test_cut_sessions_bootstrap():
    """r = 1 for ever, γ = .9, cut at 10: Σ_{t<10} .9^t = 6.5132156 plus .9^10·10 = 10."""
    open_end = dict(offsets=np.array([0, 10]), reward=np.ones(10), gamma=0.9, log_ratio=np.zeros(10))
    cut = SessionBatch(**open_end, bootstrap=[10.0], truncated=[True])
    ended = SessionBatch(**open_end, bootstrap=[10.0], truncated=[False])
    for name in ("mean", "is", "wis", "pdis", "wpdis"):
        assert value(name, cut) == pytest.approx(10.0, abs=1e-12)
        assert value(name, ended) == pytest.approx(6.5132156, abs=1e-7)


def test_no_bootstrap_after_a_true_end_or_the_horizon():
    common = dict(offsets=[0, 10], reward=np.ones(10), gamma=0.9, bootstrap=[10.0], truncated=[True])
    both = SessionBatch(**common, terminated=[True])
    at_horizon = SessionBatch(**common, horizon=10)
    before_horizon = SessionBatch(**common, horizon=11)
    assert value("mean", both) == pytest.approx(6.5132156, abs=1e-7)
    assert value("mean", at_horizon) == pytest.approx(6.5132156, abs=1e-7)
    assert value("mean", before_horizon) == pytest.approx(10.0)
