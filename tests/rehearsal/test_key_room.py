"""The rooms' rules by hand, and exact plans through them."""

import numpy as np
import pytest

from preplay.rehearsal import Aim, BeamSearch, GoalWorld, KeyRoom, Scene, SubGoal

UP, DOWN, LEFT, RIGHT, USE = range(5)
ROOM = KeyRoom()  # 3 x 3 rooms, key at (0, 2), door at (3, 1), goal at (6, 0)
HAS_KEY = SubGoal("fetch the key", lambda s: ROOM.facts(s)[2])
DOOR_OPEN = SubGoal("open the door", lambda s: ROOM.facts(s)[3])


def walk(state: int, *actions: int, room: KeyRoom = ROOM):
    reward, ended = 0.0, False
    for action in actions:
        assert not ended
        result = room.world.step(np.array([state]), np.array([action]), np.zeros((1, 1)))
        state, reward, ended = int(result.state[0]), result.reward[0], result.terminated[0] == 1
    x, y, key, door = (v[0] for v in room.facts(np.array([state])))
    return (int(x), int(y), bool(key), bool(door)), reward, ended


def test_walls_hold():
    assert walk(ROOM.state(0, 0), UP)[0] == (0, 0, False, False)
    assert walk(ROOM.state(0, 0), LEFT)[0] == (0, 0, False, False)
    assert walk(ROOM.state(2, 0), RIGHT)[0] == (2, 0, False, False)  # the wall between the rooms
    assert walk(ROOM.state(2, 1), RIGHT)[0] == (2, 1, False, False)  # the locked door
    assert walk(ROOM.state(2, 1, door=True), RIGHT)[0] == (3, 1, False, True)
    assert walk(ROOM.state(3, 1, door=True), UP)[0] == (3, 1, False, True)


def test_the_door_opens_only_with_the_key_from_the_cell_before_it():
    assert walk(ROOM.state(0, 2), USE)[0] == (0, 2, True, False)
    assert walk(ROOM.state(1, 2), USE)[0] == (1, 2, False, False)
    assert walk(ROOM.state(2, 1), USE)[0] == (2, 1, False, False)
    assert walk(ROOM.state(1, 1, key=True), USE)[0] == (1, 1, True, False)
    assert walk(ROOM.state(2, 1, key=True), USE)[0] == (2, 1, True, True)


def test_the_goal_pays_once_and_ends():
    at, reward, ended = walk(ROOM.state(5, 0, key=True, door=True), RIGHT)
    assert (at[:2], reward, ended) == ((6, 0), 1, True)
    path = [DOWN, DOWN, USE, RIGHT, RIGHT, UP, USE, RIGHT, RIGHT, RIGHT, RIGHT, UP]
    assert walk(ROOM.state(0, 0), *path)[1:] == (1, True)


def test_slips_do_nothing():
    room = KeyRoom(slip=0.25)
    after = room.world.transition[room.state(1, 1), LEFT]
    assert after[room.state(0, 1)] == 0.75
    assert after[room.state(1, 1)] == 0.25


def test_starts_and_words():
    assert len(ROOM.starts) == 8
    assert not any(any(f[i] for f in ROOM.facts(ROOM.starts)[2:]) for i in range(8))
    words = ROOM.describe(
        np.array([ROOM.state(0, 0), ROOM.state(3, 1, key=True, door=True), ROOM.state(6, 0)])
    )
    assert words[0] == "You are in the left room. The key is on the floor. The door is locked."
    assert words[1] == "You are in the doorway. You hold the key. The door is open."
    assert words[2].endswith("You are at the goal.")


def test_beam_search_finds_the_shortest_way_and_its_exact_value():
    start = np.array([ROOM.state(0, 0), ROOM.state(2, 1, key=True)])
    found = BeamSearch(width=400).propose(Scene(ROOM.world, start, 14, Aim(gamma=0.9)))
    exact = ROOM.world.optimal_values(0.9, 14).max(1)[start]
    assert found.best_value == pytest.approx(exact)
    assert found.best_value == pytest.approx([0.9**11, 0.9**5])
    assert walk(int(start[0]), *found.best_plan[0, :12])[1:] == (1, True)


def test_beam_search_towards_a_sub_goal():
    start = np.array([ROOM.state(2, 0)])
    found = BeamSearch().propose(Scene(GoalWorld(ROOM.world, HAS_KEY), start, 8, Aim(gamma=0.9)))
    assert found.best_value == pytest.approx([0.9**4])  # two left, two down, use
    assert walk(int(start[0]), *found.best_plan[0, :5])[0] == (0, 2, True, False)
    out_of_reach = Scene(GoalWorld(ROOM.world, DOOR_OPEN), start, 8, Aim(gamma=0.9))
    assert BeamSearch().propose(out_of_reach).best_value == pytest.approx([0])


def test_a_goal_world_pays_for_the_sub_goal_only():
    world = GoalWorld(ROOM.world, HAS_KEY)
    states = np.array([ROOM.state(0, 2), ROOM.state(5, 0)])
    result = world.step(states, np.array([USE, RIGHT]), np.zeros((2, 1)))
    assert result.reward.tolist() == [1, 0]
    assert result.terminated.tolist() == [1, 1]  # reached; and the world's own end, which pays nothing here
