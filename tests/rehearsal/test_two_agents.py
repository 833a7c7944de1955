"""The crossing's dynamics by hand, habits, and the prediction of another agent."""

import numpy as np
import pytest

from preplay.rehearsal import (
    Aim,
    CrossingRules,
    EachActionThen,
    Scene,
    TwoAgentWorld,
    habit,
    predicted_other,
)

UP, DOWN, LEFT, RIGHT, WAIT = range(5)
RULES = CrossingRules()  # 7 x 3, the wall in column 3, the gap at (3, 1), our goal at (6, 1)


def move(state, ours, theirs):
    after, bump = RULES.move(np.array([state]), np.array([ours]), np.array([theirs]))
    return tuple(after[0].tolist()), bool(bump[0])


@pytest.mark.parametrize(
    ("state", "ours", "theirs", "after", "bump"),
    [
        ((0, 1, 6, 1), RIGHT, LEFT, (1, 1, 5, 1), False),
        ((0, 0, 6, 2), UP, DOWN, (0, 0, 6, 2), False),  # the outer walls hold
        ((2, 0, 4, 2), RIGHT, LEFT, (2, 0, 4, 2), False),  # the wall between
        ((2, 1, 4, 1), RIGHT, LEFT, (2, 1, 4, 1), True),  # both into the gap
        ((2, 1, 3, 1), RIGHT, LEFT, (2, 1, 3, 1), True),  # they would change places
        ((2, 1, 3, 1), RIGHT, WAIT, (2, 1, 3, 1), True),  # into someone who stays
        ((3, 1, 4, 1), WAIT, LEFT, (3, 1, 4, 1), True),
        ((3, 1, 4, 1), RIGHT, UP, (4, 1, 4, 0), False),  # into a cell that becomes free
        ((2, 1, 3, 1), LEFT, LEFT, (1, 1, 2, 1), False),  # one behind the other
        ((2, 1, 3, 1), UP, LEFT, (2, 0, 2, 1), False),  # stepping aside
        ((0, 0, 6, 1), WAIT, WAIT, (0, 0, 6, 1), False),
    ],
)
def test_moves_by_hand(state, ours, theirs, after, bump):
    assert move(state, ours, theirs) == (after, bump)


def test_the_two_are_never_in_one_cell_nor_in_a_wall():
    rng = np.random.default_rng(0)
    state = np.repeat(RULES.starts, 5, 0)
    for _ in range(60):
        before = state
        state, bump = RULES.move(state, rng.integers(5, size=len(state)), rng.integers(5, size=len(state)))
        assert not (state[:, :2] == state[:, 2:]).all(1).any()
        assert RULES.free(state[:, 0], state[:, 1]).all()
        assert RULES.free(state[:, 2], state[:, 3]).all()
        assert (np.abs(state - before).sum(1) <= 2).all()
        assert np.array_equal(state[bump], before[bump])


def test_starts_are_apart_and_numbers_are_distinct():
    assert len(RULES.starts) == 81
    assert len(np.unique(RULES.number(RULES.starts))) == 81


@pytest.mark.parametrize("right", [True, False])
def test_the_way_is_a_shortest_one(right):
    end = (6, 1) if right else (0, 1)
    for x in range(7):
        for y in range(3):
            if x == 3 and y != 1:
                continue
            place, steps = np.array([[x, y]]), 0
            while tuple(place[0]) != end:
                place = RULES._target(place, RULES.towards(place, right=right))
                steps += 1
                assert steps < 20
            through = (x < 3) == right or x == 3
            direct = abs(x - end[0]) + abs(y - end[1])
            assert steps == direct or (through and steps <= direct + 0)
            assert RULES.towards(place, right=right).tolist() == [WAIT]


def test_rewards_and_the_end():
    world = TwoAgentWorld(RULES, habit(RULES, haste=0.0, polite=False))  # the other never moves
    states = np.array([[5, 1, 0, 0], [2, 1, 3, 1], [0, 0, 6, 0]])
    result = world.step(states, np.array([RIGHT, RIGHT, RIGHT]), np.zeros((3, 1)))
    assert result.reward == pytest.approx([1 - 0.02, -0.02 - 0.2, -0.02])
    assert result.terminated.tolist() == [1, 0, 0]
    assert result.state.tolist() == [[6, 1, 0, 0], [2, 1, 3, 1], [1, 0, 6, 0]]
    assert world.observe(states)[0] == pytest.approx([5 / 6, 0.5, 0, 0])


def test_habits():
    pushy, polite = habit(RULES, haste=0.9, polite=False), habit(RULES, haste=0.9, polite=True)
    near_gap = RULES.number(np.array([[2, 1, 5, 1]]))[0]
    assert pushy[near_gap].tolist() == pytest.approx([0, 0, 0.9, 0, 0.1])
    assert polite[near_gap].tolist() == pytest.approx([0, 0, 0, 0, 1])
    far = RULES.number(np.array([[0, 0, 4, 1]]))[0]
    assert polite[far, LEFT] == pytest.approx(0.9)


def test_the_other_is_learned_from_what_it_did():
    state = np.array([[0, 0, 5, 1]] * 6 + [[1, 1, 5, 1]] * 2)
    action = np.array([LEFT] * 6 + [WAIT] * 2)
    p = predicted_other(RULES, state, action, strength=2.0)
    cell = (np.array([0, 0, 6, 0, 2]) + 2 / 5) / 10
    assert p[RULES.number(state[:1])[0]] == pytest.approx((np.array([0, 0, 6, 0, 0]) + 2 * cell) / 8)
    unseen_joint = RULES.number(np.array([[2, 2, 5, 1]]))[0]
    assert p[unseen_joint] == pytest.approx(cell)
    assert p[RULES.number(np.array([[0, 0, 4, 0]]))[0]] == pytest.approx(np.full(5, 0.2))
    with pytest.raises(ValueError, match="sum to 1"):
        TwoAgentWorld(RULES, np.zeros_like(p))


def test_whoever_knows_the_other_steps_aside():
    """The other stands in the gap and will come on: going ahead only bumps, unless it is thought to stand still."""
    state = np.array([[2, 1, 3, 1]])

    def ahead(observation, uniform):
        place = np.rint(observation * [6, 2, 6, 2]).astype(int)
        return RULES.towards(place[:, :2], right=True)

    def first(other):
        scene = Scene(TwoAgentWorld(RULES, other), state, 8, Aim(gamma=0.97, particles=8))
        return EachActionThen(ahead).propose(scene)

    knowing = first(habit(RULES, haste=0.95, polite=False))
    assert knowing.best_action[0] in (UP, DOWN)
    assert knowing.value[0, knowing.best[0]] > knowing.value[0, RIGHT] + 0.3
    still = first(habit(RULES, haste=0.0, polite=False))
    assert still.best_value[0] < 0  # it would never get past
