"""The imagination loop against returns computed by hand."""

from dataclasses import dataclass

import numpy as np
import pytest

from preplay.rehearsal import Luck, TabularWorld, imagine

from .conftest import LEFT, RIGHT, corridor


@dataclass
class Always:
    """One action, and a record of the states it was asked in."""

    action: int
    draws: int = 0

    def actions(self, world, step, rows, state, uniform):
        assert uniform.shape == (len(rows), self.draws)
        return np.full(len(rows), self.action)


def luck(rows: int, seed: int = 0) -> Luck:
    return Luck(seed, np.arange(rows))


def dying(probability: float, reward: float = 1.0) -> TabularWorld:
    """One state; every step gives ``reward`` and ends the session with this probability."""
    one = np.ones((1, 2, 1))
    return TabularWorld.exact(one, reward * one, probability * one)


def test_no_branch_goes_on_after_its_end():
    # from place 2 of 5: 3, 4 (end); from place 0: 1, 2, 3 and the branch stops without an end
    branches = imagine(corridor(), np.array([2, 0]), Always(RIGHT), steps=3, luck=luck(2))
    assert branches.branch.tolist() == [0, 1, 0, 1, 1]
    assert branches.step.tolist() == [0, 0, 1, 1, 2]
    assert branches.next_state.tolist() == [3, 1, 4, 2, 3]
    assert branches.terminated.tolist() == [0, 0, 1, 0, 0]
    assert branches.last.tolist() == [2, 4]


def test_returns_by_hand_with_bootstrap_only_where_nothing_ended():
    branches = imagine(corridor(cost=0.1), np.array([2, 0]), Always(RIGHT), steps=3, luck=luck(2))
    value = branches.returns(0.5, value=lambda state: 10.0 * state)
    # branch 0: -.1 + .5 * 1, ended; branch 1: -.1 - .05 - .025 and .5^3 * V(3) = .125 * 30
    assert value == pytest.approx([0.4, -0.175 + 3.75])
    assert branches.returns(0.5) == pytest.approx([0.4, -0.175])


def test_survival_weights_what_follows_but_not_the_step_that_ends():
    branches = imagine(dying(0.5), np.zeros(1, int), Always(0), steps=3, luck=luck(1), ending="weigh")
    assert branches.survival.tolist() == [1, 0.5, 0.25]
    assert branches.returns(1.0) == pytest.approx([1.75])
    # bootstrap: what is left after three steps is 1/8
    assert branches.returns(1.0, value=lambda s: np.full(len(s), 8.0)) == pytest.approx([2.75])


def test_weighed_equals_the_mean_of_sampled_endings():
    rows = 20_000
    sampled = imagine(dying(0.3), np.zeros(rows, int), Always(0), steps=6, luck=luck(rows))
    weighed = imagine(dying(0.3), np.zeros(1, int), Always(0), steps=6, luck=luck(1), ending="weigh")
    assert sampled.returns(0.9).mean() == pytest.approx(weighed.returns(0.9)[0], abs=0.03)


def test_a_step_that_ends_the_session_keeps_its_reward():
    branches = imagine(dying(1.0), np.zeros(4, int), Always(0), steps=5, luck=luck(4), ending="weigh")
    assert len(branches) == 4
    assert branches.returns(0.9) == pytest.approx(np.ones(4))


def test_caution_is_a_price_on_uncertainty():
    world = corridor()
    unsure = TabularWorld(world.transition, world.reward, world.terminated, np.full((5, 2), 0.2))
    branches = imagine(unsure, np.array([3]), Always(RIGHT), steps=2, luck=luck(1))
    assert branches.returns(1.0, caution=2.0) == pytest.approx([1 - 0.4])


def test_one_group_shares_the_worlds_luck_whatever_else_runs():
    world, start = corridor(slip=0.4), np.array([2, 2, 2, 1])
    together = Luck(3, np.array([0, 0, 1, 1]))
    branches = imagine(world, start, Always(RIGHT), steps=8, luck=together)
    path = [branches.next_state[branches.branch == b].tolist() for b in range(4)]
    assert path[0] == path[1]
    assert path[0] != path[2]
    alone = imagine(world, start[2:3], Always(RIGHT), steps=8, luck=Luck(3, np.array([0])))
    assert alone.next_state.tolist() == path[0]


def test_same_seed_same_branches_another_seed_others():
    world, start = corridor(slip=0.4), np.full(50, 2)
    runs = [
        imagine(world, start, Always(LEFT), steps=6, luck=luck(50, seed)).next_state for seed in (1, 1, 2)
    ]
    assert np.array_equal(runs[0], runs[1])
    assert not np.array_equal(runs[0], runs[2])


def test_states_are_reinjected_every_k_steps():
    calls = []

    def home(state):
        calls.append(len(state))
        return np.zeros_like(state)

    branches = imagine(
        corridor(9), np.array([0]), Always(RIGHT), steps=5, luck=luck(1), reinject=home, reinject_every=2
    )
    assert branches.next_state.tolist() == [1, 2, 1, 2, 1]
    assert branches.state.tolist() == [0, 1, 0, 1, 0]
    assert calls == [1, 1]


@pytest.mark.parametrize("bad", [{"steps": 0}, {"luck": Luck(0, np.arange(3))}])
def test_impossible_requests_are_refused(bad):
    with pytest.raises(ValueError, match="starts"):
        imagine(corridor(), np.array([0]), Always(0), **({"steps": 1, "luck": luck(1)} | bad))
