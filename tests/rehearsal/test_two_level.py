"""The upper level's counts and plans by hand, and what it lets a short-sighted planner do. Dreams."""

import numpy as np
import pytest

from preplay.rehearsal import (
    Aim,
    BeamSearch,
    KeyRoom,
    Luck,
    PlannedActions,
    Scene,
    SubGoal,
    SubGoalModel,
    TwoLevel,
    dream,
    imagine,
    relabel,
)

from .conftest import RIGHT, corridor

ROOM = KeyRoom()
GOALS = (
    SubGoal("fetch the key", lambda s: ROOM.facts(s)[2]),
    SubGoal("open the door", lambda s: ROOM.facts(s)[3]),
    SubGoal("reach the goal", lambda s: (ROOM.facts(s)[0] == 6) & (ROOM.facts(s)[1] == 0)),
)
NOTHING, KEY, KEY_DOOR = 0b000, 0b001, 0b011


def test_upper_states_are_what_is_reached():
    model = SubGoalModel(GOALS, within=8)
    states = np.array([ROOM.state(0, 0), ROOM.state(1, 1, key=True), ROOM.state(6, 0, key=True, door=True)])
    assert model.upper(states).tolist() == [NOTHING, KEY, 0b111]


def test_counts_and_values_by_hand():
    model = SubGoalModel(GOALS, within=8, guess=0.0, doubt=1.0)
    model.record(np.array([NOTHING] * 4), 0, np.array([True, True, True, False]), np.array([3, 5, 4, 8]),
                 np.array([KEY, KEY, KEY, NOTHING]))  # fmt: skip
    model.record(np.array([KEY]), 1, np.array([True]), np.array([4]), np.array([KEY_DOOR]))
    model.record(np.array([KEY_DOOR] * 2), 2, np.array([True, True]), np.array([6, 6]), np.array([7, 7]))
    assert model.completion()[NOTHING, 0] == pytest.approx(3 / 5)
    assert model.duration()[NOTHING, 0] == 4
    values = model.values(0.9)
    assert values[KEY_DOOR, 2] == pytest.approx(2 / 3 * 0.9**6)
    assert values[KEY, 1] == pytest.approx(1 / 2 * 0.9**4 * 2 / 3 * 0.9**6)
    assert values[NOTHING, 0] == pytest.approx(3 / 5 * 0.9**4 * values[KEY, 1])
    assert values[KEY, 0] == 0  # it is reached already
    assert TwoLevel(model).chosen(np.array([ROOM.state(0, 0)]), 0.9).tolist() == [0]


def test_what_was_never_tried_is_thought_possible():
    model = SubGoalModel(GOALS, within=8, guess=0.5)
    assert model.completion()[NOTHING].tolist() == [0.5, 0.5, 0.5]
    model.record(np.zeros(9, int), 2, np.zeros(9, bool), np.full(9, 8), np.zeros(9, int))
    assert model.completion()[NOTHING].tolist() == [0.5, 0.5, 0.05]
    with pytest.raises(ValueError, match="doubt"):
        SubGoalModel(GOALS, within=8, doubt=0)


def taught() -> SubGoalModel:
    """Attempts imagined from every kind of state, eight steps each."""
    model = SubGoalModel(GOALS, within=8)
    states = np.concatenate(
        [ROOM.starts, [ROOM.state(0, 2, key=True), ROOM.state(2, 1, key=True, door=True)]]
    )
    model.rehearse(ROOM.world, states, BeamSearch(), aim=Aim(), seed=0, round_=0)
    return model


def test_imagined_attempts_teach_the_upper_level_what_is_possible():
    model = taught()
    assert model.tries[NOTHING].tolist() == [8, 8, 8]
    assert model.done[NOTHING, 0] == 8  # the key can always be fetched in eight steps
    assert model.done[NOTHING, 2] == 0  # the goal never
    assert model.done[KEY_DOOR, 2] == 1
    assert model.duration()[KEY_DOOR, 2] == 5
    assert model.values(0.97)[NOTHING].argmax() in (0, 1)


def test_a_short_sighted_planner_sees_the_goal_with_two_levels_only():
    def play(proposer, steps=30):
        state, reward = np.array([ROOM.state(0, 0)]), 0.0
        for step in range(steps):
            scene = Scene(ROOM.world, state, 8, Aim(gamma=0.97), 0, (step,))
            result = ROOM.world.step(state, proposer.propose(scene).best_action, np.zeros((1, 1)))
            state, reward = result.state, reward + result.reward[0]
            if result.terminated[0]:
                return reward, step + 1
        return reward, steps

    assert play(TwoLevel(taught())) == (1.0, 12)
    start = Scene(ROOM.world, np.array([ROOM.state(0, 0)]), 8, Aim(gamma=0.97))
    assert BeamSearch().propose(start).best_value.tolist() == [0]  # eight steps do not reach it
    assert taught().values(0.97)[NOTHING].max() > 0.1


def test_relabelled_steps_by_hand():
    branches = imagine(
        corridor(6),
        np.array([0, 2]),
        PlannedActions(np.full((2, 3), RIGHT)),
        steps=3,
        luck=Luck(0, np.arange(2)),
    )
    told = relabel(branches, 3, np.random.default_rng(0), elsewhere=0)
    assert len(told) == 18
    assert (told.next_state == told.state + 1).all()
    first = told.state < 2
    assert (told.goal >= told.next_state).all()  # never one that was passed before
    assert set(told.goal[first & (told.state == 0)].tolist()) <= {1, 2, 3}
    assert told.reached.tolist() == (told.goal == told.next_state).tolist()
    assert 0 < told.reached.sum() < 18
    elsewhere = relabel(branches, 200, np.random.default_rng(0), elsewhere=1)
    assert set(elsewhere.goal.tolist()) == {1, 2, 3, 4, 5}
    assert (elsewhere.goal < elsewhere.next_state).any()


def test_dreams_need_no_reward_and_are_the_same_for_the_same_seed():
    world, start = corridor(8), np.array([0, 3, 5])
    one, two = (dream(world, start, steps=6, seed=1, round_=0) for _ in range(2))
    other = dream(world, start, steps=6, seed=1, round_=1)
    assert np.array_equal(one.goal, two.goal)
    assert not np.array_equal(one.action[:12], other.action[:12])
    assert one.reached.any()
