"""Weight tails, missing mass, clipping, on-policy check, model error, support and the collection plan."""

import numpy as np
import pytest
from benchmarks._known_problems import graph, model_win, stop_go, two_sessions

from preplay.errors import PreplayError
from preplay.estimators import (
    SessionBatch,
    clip_grid,
    collection_plan,
    get_estimator,
    mass_balance,
    model_error,
    on_policy_check,
    pareto_k,
    support_coverage,
    tail_mass,
)

WPDIS = get_estimator("wpdis")


@pytest.mark.parametrize("shape", [0.2, 0.5, 0.9])
def test_pareto_k_recovers_the_shape(shape):
    rng, estimates = np.random.default_rng(0), []
    for _ in range(20):
        u = rng.random(20_000)
        estimates.append(pareto_k(np.log((u**-shape - 1) / shape + 1)))
    # the prior pulls by about 10/(tail + 10) = 2.3 % of the distance to .5
    assert np.mean(estimates) == pytest.approx(shape, abs=0.05)


def test_pareto_k_without_a_tail():
    assert pareto_k(np.log(np.tile([0.2, 1.8], 500))) == -np.inf
    assert np.isnan(pareto_k(np.zeros(10)))
    assert pareto_k(np.random.default_rng(0).normal(size=1000) * 200) > 2  # up to e^600: no overflow
    assert pareto_k(np.r_[np.zeros(999), 900.0]) == np.inf


def test_tail_mass_by_hand():
    """200 sessions, two of weight 99, the others 1: the top 1 % carry 198/396."""
    assert tail_mass(np.log(np.r_[99.0, 99.0, np.ones(198)])) == pytest.approx(0.5)
    assert np.isnan(tail_mass(np.full(5, -np.inf)))


def test_missing_mass():
    """The target takes an action with probability .4 that the log never takes: weights average .6."""
    n = 1000
    batch = SessionBatch(np.arange(n + 1), np.ones(n), 1.0, log_ratio=np.full(n, np.log(0.6)))
    balance = mass_balance(WPDIS.statistics(batch))
    assert balance.covered == pytest.approx(0.6)
    assert balance.missing_at_least == pytest.approx(0.4, abs=1e-6)
    covered = mass_balance(WPDIS.statistics(stop_go(1000, np.random.default_rng(1))))
    assert covered.missing_at_least == 0


def test_missing_mass_names_the_turn():
    log_ratio = np.tile(np.log([1.0, 0.5, 1.0]), 400)
    batch = SessionBatch(np.arange(0, 1201, 3), np.ones(1200), 1.0, log_ratio=log_ratio)
    assert mass_balance(WPDIS.statistics(batch)).step == 1


def test_clip_grid_by_hand():
    """Cumulative weights 1.111 .111 .150 .214 | 1.389 1.389 .556 clipped at 1: three are cut."""
    grid = clip_grid(WPDIS, two_sessions(), (1.0, np.inf))
    assert grid[1].value == pytest.approx(-1.3949796372969703, abs=1e-12)
    assert grid[1].clipped_share == 0
    assert grid[0].clipped_share == pytest.approx(3 / 7)
    w1, w2 = (
        np.array([1, 0.1111111111, 0.14983164983, 0.21404521404]),
        np.array([1, 1, 0.5555555556, 0.5555555556]),
    )
    r1, r2, discount = np.array([1, -1, 1, 1]), np.array([-1, -1, -1, 0]), 0.99 ** np.arange(4)
    assert grid[0].value == pytest.approx(((w1 * r1 + w2 * r2) / (w1 + w2)) @ discount, abs=1e-8)


def test_on_policy_check_passes_a_right_model_and_fails_a_wrong_one():
    batch = model_win(400, np.random.default_rng(2), target=0.73)  # the target is the logging policy
    fine = on_policy_check(get_estimator("dm"), batch)
    assert fine.passed
    assert fine.predicted == pytest.approx(fine.observed, abs=0.2)
    wrong = SessionBatch(batch.offsets, batch.reward, 1.0, v=batch.v + 2)
    failed = on_policy_check(get_estimator("dm"), wrong)
    assert not failed.passed
    assert failed.difference == pytest.approx(fine.difference + 2)
    assert on_policy_check(get_estimator("dm"), wrong, tolerance=3.0).passed


def test_model_error_is_zero_for_the_exact_q():
    batch = graph(500, np.random.default_rng(3), steps=3)
    v = np.tile([0.6 * (1 + 0.98 + 0.98**2), 0.6 * 1.98, 0.6], 500)
    q = batch.reward + 0.98 * np.append(v[1:], 0)
    q[2::3] = batch.reward[2::3]
    exact = SessionBatch(batch.offsets, batch.reward, 0.98, q=q, v=v)
    assert model_error(exact)[0] == pytest.approx(0, abs=1e-12)
    biased = SessionBatch(batch.offsets, batch.reward, 0.98, q=q + 1, v=v)
    assert model_error(biased)[0] == pytest.approx(-(1 + 0.98 + 0.98**2))


def test_support_of_the_same_and_of_other_actions():
    rng = np.random.default_rng(4)
    logged, session = rng.normal(size=(3000, 6)), np.repeat(np.arange(300), 10)
    same = support_coverage(logged, rng.normal(size=(1500, 6)), session)
    far = support_coverage(logged, rng.normal(size=(1500, 6)) + 4, session)
    assert same.share_beyond == pytest.approx(0.05, abs=0.03)
    assert abs(same.energy_distance) < 0.02
    assert far.share_beyond > 0.95
    assert far.energy_distance > 1


def test_a_session_does_not_support_itself():
    """Near-copies inside a session must not shrink the radius."""
    rng = np.random.default_rng(5)
    centres = rng.normal(size=(200, 4))
    logged = np.repeat(centres, 8, 0) + 1e-3 * rng.normal(size=(1600, 4))
    fresh = rng.normal(size=(400, 4))
    naive = support_coverage(logged, fresh)
    grouped = support_coverage(logged, fresh, np.repeat(np.arange(200), 8))
    assert naive.share_beyond > 0.9
    assert grouped.share_beyond < 0.2
    with pytest.raises(PreplayError, match="cannot be compared"):
        support_coverage(logged, fresh[:, :3])


def test_collection_goes_where_the_variance_is():
    """Group a carries 90 % of the variance with half of the sessions; σ = 1 in both."""
    psi = np.r_[np.full(50, 3.0), np.full(50, -3.0), np.full(100, 1.0)]
    groups = ["a"] * 100 + ["b"] * 100
    plan = collection_plan(psi, groups, 1.0, budget=100)
    assert [s.group for s in plan] == ["a", "b"]
    assert plan[0].variance_share == pytest.approx(0.9)
    assert plan[0].rollouts > 80
    # a: A = 900/200² = .0225, p²σ² = .25; with m = rollouts: after = A·.25/(.25 + m·A)
    m = plan[0].rollouts
    after = 0.0225 * 0.25 / (0.25 + m * 0.0225)
    assert plan[0].gain == pytest.approx((0.0225 - after) / 0.025)
    assert sum(s.rollouts for s in plan) == 100


def test_collection_prefers_what_the_logs_lack():
    psi, groups = np.ones(100), ["seen"] * 50 + ["unseen"] * 50
    plan = collection_plan(psi, groups, 1.0, budget=10, missing={"unseen": 1.0})
    assert plan[0].group == "unseen"
    with pytest.raises(PreplayError, match="undefined"):
        collection_plan(np.full(100, np.nan), groups, 1.0, 10)
