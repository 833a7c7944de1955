"""The gates' verdicts, and the outcomes that the gap is computed from."""

import numpy as np
import pytest

from preplay_rllib import RehearsalSettings
from preplay_rllib._gates import Gates, known_outcomes
from preplay_rllib._settings import at


def gates(**settings) -> Gates:
    made = Gates(RehearsalSettings(warmup_steps=100, **settings))
    made.successes = 1
    made.observe_error({"exact": 0.95})
    return made


def test_each_gate_says_why():
    open_ = gates()
    assert open_.verdict(100).open
    assert open_.verdict(99).reason == "warm-up"
    poor = gates()
    poor.observe_error({"exact": 0.5})
    assert poor.verdict(100).reason == "poor model"
    never = gates()
    never.successes = 0
    assert never.verdict(100).reason == "no success yet"
    exploited = gates()
    exploited.observe_gap(imagined=0.6, real=0.2)
    assert exploited.verdict(100).reason == "exploited model"
    assert gates(gates=False).verdict(100).open


def test_an_exploited_model_is_let_in_again_when_the_gap_has_closed():
    judged = gates()
    judged.observe_gap(0.5, 0.0)
    for _ in range(2):
        judged.observe_gap(0.2, 0.2)
        closed = judged.verdict(100)
    assert closed.reason == "exploited model"
    judged.observe_gap(0.2, 0.2)
    assert judged.verdict(100).open


def test_only_rows_that_were_followed_far_enough_have_a_known_outcome():
    rows = {
        "episode": np.array([0, 0, 0, 0, 1, 1, 1]),
        "terminated": np.array([0, 0, 0, 0, 0, 0, 1], bool),
        "worth": np.array([0, 0, 0, 0, 0, 0, 1.0]),
    }
    pairs = known_outcomes(rows, horizon=2)
    # episode 0 goes on: its last row was followed for one step only; episode 1 ended with success
    assert pairs.rows.tolist() == [0, 1, 2, 4, 5, 6]
    assert pairs.real_worth == pytest.approx(2 / 6)


def test_ratio_and_horizon_follow_their_schedules():
    settings = RehearsalSettings(real_ratio=[(0, 1.0), (1000, 0.2)], horizon=[(20, 1), (100, 15)])
    assert settings.imagined_rows(100, 0) == 0
    assert settings.imagined_rows(100, 500) == round(100 * 0.4 / 0.6)
    assert settings.imagined_rows(100, 5000) == 400
    assert [at(settings.horizon, s) for s in (0, 60, 150)] == [1, 8, 15]
    with pytest.raises(ValueError, match="real_ratio"):
        RehearsalSettings(real_ratio=0.0)


def test_worth_is_summed_within_the_horizon_also_where_chunks_of_two_environments_come_in_turns():
    rows = {
        "episode": np.array([7, 9, 7, 9, 7]),
        "terminated": np.array([0, 0, 0, 1, 0], bool),
        "worth": np.array([1.0, 10.0, 2.0, 20.0, 4.0]),
    }
    pairs = known_outcomes(rows, horizon=2)
    assert pairs.rows.tolist() == [0, 2, 1, 3]
    assert pairs.real_worth == pytest.approx((3 + 6 + 30 + 20) / 4)


def test_success_rate_is_that_of_the_newest_fifty_episodes_and_survives():
    judged = gates()
    judged.observe_ends(0, 60)
    assert judged.success_rate == 0.0
    judged.observe_ends(20, 25)
    copy = gates()
    copy.set_state(judged.get_state())
    assert copy.success_rate == judged.success_rate == 20 / 50
