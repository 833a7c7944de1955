"""The parts of a backtest on numbers worked out by hand."""

import numpy as np
import pytest

from preplay.backtest import (
    Features,
    View,
    additive,
    calibrated,
    clone_table,
    combine_labelled,
    fit_categorical,
    make_learner,
    make_problem,
    survival_value,
)
from preplay.backtest._rates import event_rate, thin
from preplay.backtest._scores import rank_correlation
from preplay.backtest._support import Support, calibrate_limits

from .conftest import make_turns


def test_retries_are_chained_not_added():
    # .5 now, else .5 of the rest, else .5 of what is left: 1 - .5³; adding would give 1.5
    value = survival_value(np.full(3, 0.5), np.zeros(3), np.arange(3))
    assert value == pytest.approx(0.875)


def test_those_who_leave_do_not_try_again():
    # .2 solved, .3 leave, .5 go on and solve with .4
    assert survival_value(np.array([0.2, 0.4]), np.array([0.3, 0.0]), np.arange(2)) == pytest.approx(
        0.2 + 0.5 * 0.4
    )


def test_values_can_be_discounted():
    # .5 now, else .5 of the rest one turn later
    value = survival_value(np.full(2, 0.5), np.zeros(2), np.arange(2), gamma=0.9)
    assert value == pytest.approx(0.5 + 0.9 * 0.25)


def test_a_declared_horizon_ends_the_session():
    assert survival_value(np.full(3, 0.5), np.zeros(3), np.arange(3), horizon=1) == 0.5


def test_session_length_does_not_move_the_value():
    """Twice as many sessions still running at turn 1 changes nothing: their share is predicted, not counted."""
    few = survival_value(np.array([0.3, 0.3, 0.2]), np.zeros(3), np.array([0, 0, 1]))
    many = survival_value(np.array([0.3, 0.3, 0.2, 0.2]), np.zeros(4), np.array([0, 0, 1, 1]))
    assert few == pytest.approx(many) == pytest.approx(0.3 + 0.7 * 0.2)


def test_additive_back_off():
    count = np.array([[1000.0, 1000.0], [1000.0, 0.0]])
    total = np.array([[100.0, 300.0], [400.0, 0.0]])
    rates = additive(total, count)
    assert rates[0] == pytest.approx([0.1, 0.3], abs=0.01)
    # never seen: first row + (second row - first row of the first column) = .3 + (.4 - .1), within the shrinkage
    assert rates[1, 1] == pytest.approx(0.6, abs=0.04)


def test_chain_of_two_stages_by_hand():
    # stage 0: class 0 leads to stage 1; there it solves half the time, else stays
    stage, action = np.repeat([0, 1], 4000), np.zeros(8000, int)
    success = np.r_[np.zeros(4000), np.tile([1.0, 0.0], 2000)]
    after = np.where(success > 0, -1, 1)
    model = fit_categorical(stage, action, success, np.zeros(8000), after, stages=2, classes=1)
    start, policy = np.array([[1.0], [0.0]]), np.ones((2, 1))
    assert model.value(start, policy, 1) == pytest.approx(0.0, abs=0.01)
    assert model.value(start, policy, 3) == pytest.approx(0.75, abs=0.02)


def test_clone_table_leans_on_habits_in_rare_stages():
    table = clone_table(np.array([0, 0, 0, 0]), np.array([1, 1, 1, 0]), stages=2, classes=2)
    assert table.sum(1) == pytest.approx([1, 1])
    assert table[1] == pytest.approx([0.25, 0.75])  # never seen there: overall habits


def test_interval_is_as_wide_as_earlier_errors():
    predicted, logged = np.array([0.5, 0.5, 0.5, 0.5]), np.array([0.6, 0.4, 0.6, 0.4])
    bounds = calibrated(0.5, predicted, logged, level=0.9)
    # error .1 everywhere; Student's t for 4 policies at 90 % is 2.132
    assert (bounds.low, bounds.high) == (
        pytest.approx(0.5 - 0.2132, abs=1e-4),
        pytest.approx(0.7132, abs=1e-4),
    )
    sure = calibrated(0.02, predicted, logged, level=0.9)
    assert sure.low == 0
    assert sure.width < bounds.width / 2


def test_parts_of_a_policy_that_differ_count_as_more_than_one():
    """Two policies, three parts each: 2 degrees of freedom if its parts err alike, up to 4 more if they do not."""
    logged = np.full((2, 3), 0.5)
    alike = calibrated(0.5, logged + np.array([[0.1] * 3, [-0.1] * 3]), logged, level=0.9)
    mixed = calibrated(0.5, logged + np.array([[0.1, -0.1, 0.1], [-0.1, 0.1, -0.1]]), logged, level=0.9)
    assert alike.width == pytest.approx(2 * 0.1 * 2.920, rel=0.03)  # t(.95, 2), at errors of .1 around .5
    assert mixed.error == pytest.approx(alike.error, rel=0.03)
    # mean squares 1/9 between and 8/9 within: 1 / ((1/9)² / 2 + (8/9)² / 4) = 4.9 degrees of freedom
    assert mixed.width == pytest.approx(2 * 0.1 * 2.02, rel=0.03)


def test_one_pseudo_target_says_nothing():
    bounds = calibrated(0.5, np.array([0.5]), np.array([0.5]), level=0.9)
    assert (bounds.low, bounds.high) == (0, 1)


def test_labelled_sessions_take_over():
    assert combine_labelled(0.5, 0.1, 0, 0) == (0.5, 0.1)
    values = [combine_labelled(0.5, 0.1, n * 4 // 5, n) for n in (5, 50, 5000)]
    assert [round(v, 2) for v, _ in values] == [0.55, 0.72, 0.8]
    assert values[0][1] > values[1][1] > values[2][1]


def test_thinning_keeps_events_and_stands_for_all():
    event = np.r_[np.ones(100), np.zeros(9900)]
    sample = thin(np.arange(10_000), event, 1000, seed=0)
    assert len(sample.rows) == 1000
    assert (event[sample.rows] > 0).sum() == 100
    assert sample.weight.sum() == pytest.approx(10_000)


@pytest.mark.parametrize("learner", ["logistic", "boosting", "knn"])
def test_every_learner_finds_the_rule(learner):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(4000, 3))
    event = (rng.random(4000) < np.where(x[:, 0] > 0, 0.8, 0.1)).astype(float)
    rate = event_rate(learner, x, event, np.arange(3000), np.arange(3000, 4000), most=3000, seed=0)
    high = x[3000:, 0] > 0.5
    assert rate[high].mean() == pytest.approx(0.8, abs=0.06)
    assert rate[x[3000:, 0] < -0.5].mean() == pytest.approx(0.1, abs=0.06)
    assert type(make_learner(learner)).__name__


def test_rank_correlation_has_an_interval():
    rho, low, high = rank_correlation(np.arange(7.0), np.array([0, 1, 2, 3, 4, 6, 5.0]))
    assert rho == pytest.approx(1 - 6 * 2 / (7 * 48))
    assert low < rho < high
    assert np.isnan(rank_correlation(np.ones(5), np.arange(5.0))[0])


def test_limits_leave_room_for_one_more_like_them():
    seen = [
        Support(unsupported=u, first_actions=0.7, outcomes=0.1) for u in (0.02, 0.03, 0.04, 0.03, 0.02, 0.04)
    ]
    limits = calibrate_limits(seen)
    # logits -3.892, -3.476, -3.178 (twice each): mean -3.515, spread .321; t(.99, 5) = 3.365, sqrt(7 / 6) = 1.080
    assert limits["unsupported"] == pytest.approx(1 / (1 + np.exp(3.515 - 3.365 * 1.080 * 0.321)), abs=0.002)
    assert limits["first_actions"] == pytest.approx(0.7)
    assert (
        Support(unsupported=0.07, first_actions=0.7, outcomes=0.1).refusal(limits | {"outcomes": 0.2}) is None
    )
    refusal = Support(unsupported=0.5, first_actions=0.7, outcomes=0.1).refusal(limits)
    assert refusal == "50% of what it does is done by no logged policy (limit 9%)."


def test_limits_are_never_looser_than_those_without_policies():
    seen = [Support(unsupported=u, first_actions=0.99, outcomes=0.5) for u in (0.0, 1.0, 0.5)]
    assert calibrate_limits(seen) == calibrate_limits([])


def test_a_distance_that_was_predicted_well_is_no_reason_to_refuse():
    near = [Support(unsupported=0.1, first_actions=0.7, outcomes=0.1) for _ in range(5)]
    far = Support(unsupported=0.5, first_actions=0.8, outcomes=0.2)
    assert calibrate_limits([*near, far])["unsupported"] <= 0.35
    assert calibrate_limits([*near, far], held=[far])["unsupported"] == 0.5


def _leaky(steps: int, policy: str, task: str, solved: bool) -> dict:
    inner = [("SELECT 1 FROM t", f"[({i},)]\n{9 - i} moves to go", 0) for i in range(steps - 1)]
    return {
        "policy": policy,
        "task": task,
        "room": "r",
        "steps": [*inner, ("SELECT 2 FROM t", "b'3'", int(solved))],
    }


def test_a_policy_may_take_as_many_turns_as_its_longest_session():
    sessions = [_leaky(steps, policy, "t", solved=True) for policy, steps in (("a", 6), ("a", 2), ("b", 1))]
    problem = make_problem(make_turns(sessions))
    assert (problem.horizon, problem.budget(0), problem.budget(1)) == (6, 6, 1)


def test_leaks_are_named():
    sessions = [_leaky(3 if k % 2 else 6, "ab"[k % 2], f"t{k % 7}", bool(k % 2)) for k in range(60)]
    leaks = make_problem(make_turns(sessions)).leaks
    assert leaks.stops_at_success
    text = " ".join(leaks.sentences)
    assert "Session length gives the outcome away (AUC 1.00)" in text
    assert "# moves to go" in text


def test_a_copied_last_observation_forbids_own_results():
    sessions = []
    for k in range(40):
        steps = [
            ("SELECT 1 FROM t", "[(1,)]", 0),
            ("SELECT 2 FROM t", f"[({k},)]", 0),
            ("SELECT 3 FROM t", f"[({k},)]", 1),
        ]
        sessions.append({"policy": "ab"[k % 2], "task": "t", "room": "r", "steps": steps})
    problem = make_problem(make_turns(sessions))
    assert problem.leaks.stale_result
    assert Features(problem).representations == ["grounding", "agreement"]


def test_agreement_counts_the_policies_that_may_vouch(key_turns):
    problem = make_problem(key_turns)
    turns, agreed = problem.turns, View(Features(problem), ("p30", "p50")).of("agreement")[:, -2]
    for row in range(0, len(turns), 37):
        left = {"p10", "p70", "p90"} - {turns.policies[turns.policy[row]]}
        alike = (turns.question == turns.question[row]) & (turns.exact == turns.exact[row])
        who = {turns.policies[p] for p in turns.policy[alike]} & left
        assert agreed[row] == len(who) / len(left)
