"""The environments: Gymnasium's checker, seeds, luck that is common to policies, ends and cuts kept apart."""

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode

from preplay.errors import PreplayError
from preplay.rehearsal import TabularWorld, WorldModelEnv, WorldModelVectorEnv

from .conftest import LEFT, RIGHT, corridor


def vector(mode=AutoresetMode.NEXT_STEP, *, world=None, envs=2, start=(2,), **more) -> WorldModelVectorEnv:
    return WorldModelVectorEnv(world or corridor(), np.array(start), envs, autoreset_mode=mode, **more)


@pytest.mark.filterwarnings("ignore:.*infinity.*", "ignore:.*render.*")
def test_gymnasium_checker_on_a_text_world_model(text_world, starts):
    check_env(WorldModelEnv(text_world, starts), skip_render_check=True)


@pytest.mark.filterwarnings("ignore:.*render.*")
def test_gymnasium_checker_on_a_table():
    check_env(WorldModelEnv(corridor(slip=0.2), np.arange(3)), skip_render_check=True)


def test_one_session_by_hand():
    env = WorldModelEnv(corridor(), np.array([3, 1]))
    observation, info = env.reset(options={"start": 1})
    assert observation.tolist() == [0, 1, 0, 0, 0]
    assert info == {"start": 1}
    for _ in range(2):
        observation, reward, terminated, truncated, _ = env.step(RIGHT)
        assert (reward, terminated, truncated) == (0, False, False)
    observation, reward, terminated, truncated, info = env.step(RIGHT)
    assert (reward, terminated, truncated) == (1, True, False)
    assert observation.tolist() == [0, 0, 0, 0, 1]
    assert info["terminated_prob"] == 1
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(RIGHT)


def test_a_cut_is_not_an_end():
    env = WorldModelEnv(corridor(), np.array([0]), horizon=2)
    env.reset(seed=0)
    assert env.step(RIGHT)[2:4] == (False, False)
    assert env.step(RIGHT)[2:4] == (False, True)
    both = WorldModelEnv(corridor(), np.array([3]), horizon=1)
    both.reset(seed=0)
    assert both.step(RIGHT)[2:4] == (True, True)  # an end stays an end


def test_seeded_resets_draw_logged_starts(text_world, starts):
    env = WorldModelEnv(text_world, starts)
    drawn = [env.reset(seed=5)[1]["start"]] + [env.reset()[1]["start"] for _ in range(9)]
    again = [env.reset(seed=5)[1]["start"]] + [env.reset()[1]["start"] for _ in range(9)]
    assert drawn == again
    assert len(set(drawn)) > 5
    first, info = env.reset(seed=5)
    assert np.array_equal(first, text_world.observe(starts[info["start"] : info["start"] + 1])[0])


def coins() -> TabularWorld:
    """From state 0 every action leads to 1 or 2 by a fair coin and back; nothing ends."""
    transition = np.zeros((3, 2, 3))
    transition[0, :, 1:] = 0.5
    transition[1:, :, 0] = 1
    return TabularWorld.exact(transition, np.zeros((3, 2, 3)), np.zeros((3, 2, 3)))


def test_policies_meet_the_same_luck():
    seen = []
    for action in (0, 1):
        env = vector(world=coins(), envs=3, start=(0,), horizon=6)
        env.reset(seed=4)
        seen.append([env.step(np.full(3, action))[0].argmax(1).tolist() for _ in range(20)])
    assert seen[0] == seen[1]
    rows = np.array(seen[0])
    assert not np.array_equal(rows[:, 0], rows[:, 1])


def test_a_later_session_has_its_own_luck_however_long_the_first_was():
    """Row 0's second session is the same after one step in the first as after three."""
    paths = []
    for first in (RIGHT, LEFT):
        env = vector(AutoresetMode.SAME_STEP, world=corridor(slip=0.3), envs=1, start=(3, 2, 1), horizon=6)
        env.reset(seed=1)
        over = False
        while not over:
            _, _, terminated, truncated, _ = env.step(np.array([first]))
            over = bool(terminated[0] | truncated[0])
        paths.append([env.state.tolist()] + [env.step(np.array([LEFT]))[0].tolist() for _ in range(2)])
    assert paths[0] == paths[1]


def test_next_step_mode_ignores_one_action_and_adds_no_transition():
    env = vector(start=(3,), envs=2)
    env.reset(seed=0)
    observation, _, terminated, _, _ = env.step(np.array([RIGHT, LEFT]))
    assert observation.argmax(1).tolist() == [4, 2]
    assert terminated.tolist() == [True, False]
    observation, reward, terminated, _, info = env.step(np.array([RIGHT, RIGHT]))
    assert observation.argmax(1).tolist() == [3, 3]
    assert reward.tolist() == [0, 0]
    assert terminated.tolist() == [False, False]
    assert info["_uncertainty"].tolist() == [False, True]  # nothing was imagined in row 0
    observation, reward, *_ = env.step(np.array([RIGHT, LEFT]))
    assert reward.tolist() == [1, 0]


def test_same_step_mode_keeps_the_last_observation():
    env = vector(AutoresetMode.SAME_STEP, start=(3,), envs=2)
    env.reset(seed=0)
    observation, _, terminated, _, info = env.step(np.array([RIGHT, LEFT]))
    assert terminated.tolist() == [True, False]
    assert observation.argmax(1).tolist() == [3, 2]
    assert info["_final_obs"].tolist() == [True, False]
    assert info["final_obs"][0].argmax() == 4
    assert info["final_obs"][1] is None


def test_disabled_mode_waits_for_the_caller():
    env = vector(AutoresetMode.DISABLED, start=(3,), envs=2)
    env.reset(seed=0)
    env.step(np.array([RIGHT, LEFT]))
    assert env.running.tolist() == [False, True]
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(np.array([LEFT, LEFT]))
    observation, _ = env.reset(options={"reset_mask": np.array([True, False])})
    assert observation.argmax(1).tolist() == [3, 2]
    assert env.step(np.array([RIGHT, RIGHT]))[1].tolist() == [1, 0]


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_the_mode_is_declared(mode):
    assert vector(mode).metadata["autoreset_mode"] is mode


def test_one_row_is_the_single_environment_up_to_its_seed():
    """The same world and start give the same deterministic session in both."""
    single, rows = WorldModelEnv(corridor(), np.array([1])), vector(envs=1, start=(1,))
    single.reset(seed=0)
    rows.reset(seed=0)
    for action in (LEFT, RIGHT, RIGHT, RIGHT):
        one, many = single.step(action), rows.step(np.array([action]))
        assert np.array_equal(one[0], many[0][0])
        assert (one[1], one[2], one[3]) == (many[1][0], many[2][0], many[3][0])


def test_text_world_in_rows_matches_its_spaces_and_ends_by_itself(text_world, starts):
    env = WorldModelVectorEnv(text_world, starts, 16)
    observation, _ = env.reset(seed=0)
    ended, cut = 0, 0
    for step in range(40):
        assert observation.dtype == np.float32
        assert observation in env.observation_space
        observation, reward, terminated, truncated, _ = env.step(np.full(16, step % 3))
        assert np.isfinite(reward).all()
        ended, cut = ended + int(terminated.sum()), cut + int(truncated.sum())
    assert ended > 5
    assert cut > 0


def test_a_step_needs_a_reset_and_starts():
    with pytest.raises(gymnasium.error.ResetNeeded):
        vector().step(np.zeros(2, int))
    with pytest.raises(PreplayError, match="at least one state"):
        vector(start=())
