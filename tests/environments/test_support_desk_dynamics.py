"""Hidden dynamics: outcomes worked out by hand from chosen draws, and invariants under any play."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from preplay.environments.support_desk import DEFAULT, LONG, DeskConfig, Event, Intent
from preplay.environments.support_desk._dynamics import (
    START_DRAWS,
    STEP_DRAWS,
    DeskState,
    DeskTurn,
    start,
    step,
)

BILLING, DAMAGED, OUTAGE = 0, 1, 2
LUCK, NO_LUCK = 0.0, 0.999
"""Draws that make everything possible happen, or nothing that is not certain."""


def desk(**hidden: int | bool) -> DeskState:
    """One session in a chosen hidden state (by default: billing, vague, patience 2, trust 1)."""
    defaults = {
        "issue": BILLING,
        "stage": 0,
        "patience": 2,
        "trust": 1,
        "sold": False,
        "tickets": 1,
        "turn": 0,
    }
    values = defaults | {"owed": 0.0, "persona": 0, "product": 0, "name": 0} | hidden
    return DeskState(**{key: np.array([value]) for key, value in values.items()})


def play(
    state: DeskState, intent: Intent, draw: float = NO_LUCK, config: DeskConfig = DEFAULT, **draws: float
):
    """One turn with every draw equal to ``draw``, but for columns given as ``d3=...``."""
    uniforms = np.full((1, STEP_DRAWS), draw)
    for column, value in draws.items():
        uniforms[0, int(column[1:])] = value
    return step(state, np.array([intent]), uniforms, config)


def outcome(turn: DeskTurn) -> tuple[Event, float, bool, bool]:
    return (
        Event(turn.event[0]),
        round(float(turn.reward[0]), 10),
        bool(turn.terminated[0]),
        bool(turn.truncated[0]),
    )


def test_asking_brings_out_the_details():
    turn = play(desk(), Intent.ASK, LUCK)
    assert outcome(turn) == (Event.TOLD_DETAILS, -0.02, False, False)
    assert turn.state.stage[0] == 1


def test_only_the_right_remedy_solves():
    diagnosed = desk(stage=2)
    assert outcome(play(diagnosed, Intent.REFUND, LUCK))[0] == Event.SOLVED
    for wrong in (Intent.FIX, Intent.ESCALATE):
        assert outcome(play(diagnosed, wrong, LUCK, d5=1, d6=1))[0] == Event.WRONG_REMEDY
    assert outcome(play(desk(stage=2, issue=OUTAGE), Intent.ESCALATE, LUCK))[0] == Event.SOLVED


def test_closing_a_solved_case_pays_one_less_the_turn():
    turn = play(desk(stage=3), Intent.CLOSE)
    assert outcome(turn) == (Event.RESOLVED, 0.98, True, False)  # 1 - 0.02
    assert turn.resolved[0]
    assert not turn.churned[0]


def test_sale_needs_a_solved_case_and_pays_half():
    sold = play(desk(stage=3, trust=2), Intent.UPSELL, LUCK)
    assert outcome(sold) == (Event.SALE, 0.48, False, False)  # 0.5 - 0.02
    assert outcome(play(sold.state, Intent.UPSELL, LUCK, d1=1, d6=1))[0] == Event.NO_SALE  # only once
    assert outcome(play(desk(stage=2, trust=2), Intent.UPSELL, LUCK, d5=1, d6=1))[0] == Event.OFFER_TOO_EARLY


def test_churn_costs_one_and_the_turn():
    turn = play(desk(patience=0), Intent.CLOSE, LUCK)
    assert outcome(turn) == (Event.CHURNED, -1.02, True, False)
    assert turn.churned[0]


def test_a_wrong_remedy_costs_patience_and_trust():
    after = play(desk(stage=1), Intent.FIX, LUCK, d5=1, d6=1).state
    assert (after.patience[0], after.trust[0]) == (1, 0)


def test_no_patience_left_means_churn():
    turn = play(desk(patience=0), Intent.FIX, NO_LUCK, d2=0.0)
    assert outcome(turn) == (Event.CHURNED, -1.02, True, False)


def test_empathy_soothes_only_the_angry():
    assert play(desk(patience=1), Intent.EMPATHISE, LUCK).state.patience[0] == 2
    calm = play(desk(patience=3), Intent.EMPATHISE, NO_LUCK)
    assert outcome(calm)[0] == Event.UNMOVED
    assert calm.state.patience[0] == 3


def test_horizon_truncates_and_does_not_terminate():
    assert outcome(play(desk(turn=11), Intent.ASK, NO_LUCK)) == (Event.STILL_VAGUE, -0.02, False, True)
    assert outcome(play(desk(turn=10), Intent.ASK, NO_LUCK))[3] is False


def test_ending_on_the_last_turn_is_termination_only():
    assert outcome(play(desk(turn=11, stage=3), Intent.CLOSE)) == (Event.RESOLVED, 0.98, True, False)


def test_long_variant_pays_everything_on_the_last_turn():
    first = play(desk(stage=3, tickets=3), Intent.CLOSE, config=LONG)
    assert outcome(first) == (Event.NEXT_TICKET, 0.0, False, False)
    assert (first.state.stage[0], first.state.tickets[0]) == (0, 2)
    last = play(desk(stage=3, tickets=1, owed=float(first.state.owed[0])), Intent.CLOSE, config=LONG)
    # two tickets of three at 1/3 each, two turns at 0.02: 0.6267
    assert last.reward[0] == pytest.approx(2 / 3 - 0.04)
    assert last.terminated[0]


def test_long_variant_pays_what_is_owed_when_it_is_cut():
    turn = play(desk(turn=39, owed=0.5), Intent.ASK, config=LONG)
    assert outcome(turn) == (Event.STILL_VAGUE, 0.48, False, True)  # 0.5 - 0.02
    assert turn.state.owed[0] == 0.0


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10_000), long=st.booleans())
def test_any_play_keeps_the_state_in_its_bounds(seed, long):
    config, rng = (LONG if long else DEFAULT), np.random.default_rng(seed)
    state, total, earned = start(rng.random((64, START_DRAWS)), config), np.zeros(64), np.zeros(64)
    for _ in range(config.horizon):
        turn = step(state, rng.integers(0, 9, len(total)), rng.random((len(total), STEP_DRAWS)), config)
        total += turn.reward
        earned += (
            turn.sale * 0.5 - turn.churned - 0.02 + (state.tickets - turn.state.tickets) / config.tickets
        )
        assert not (turn.terminated & turn.truncated).any()
        assert np.isin(turn.state.patience, range(4)).all()
        assert np.isin(turn.state.trust, range(3)).all()
        assert np.isin(turn.state.stage, range(4)).all()
        ended = turn.terminated | turn.truncated
        assert total[ended] == pytest.approx(earned[ended])  # nothing is lost by paying late
        state, total, earned = turn.state.select(~ended), total[~ended], earned[~ended]
        if not len(total):
            return
    raise AssertionError("a session outlived the horizon")


def test_a_session_depends_only_on_its_own_draws():
    draws, uniforms = (
        np.random.default_rng(1).random((5, START_DRAWS)),
        np.random.default_rng(2).random((5, STEP_DRAWS)),
    )
    intents = np.array([0, 2, 4, 6, 7])
    together = step(start(draws, DEFAULT), intents, uniforms, DEFAULT)
    alone = step(start(draws[2:3], DEFAULT), intents[2:3], uniforms[2:3], DEFAULT)
    assert together.event[2] == alone.event[0]
    assert together.state.select(np.array([2])).patience == alone.state.patience
