"""The Gymnasium environment: the checker passes, and it plays exactly what the simulator plays."""

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from preplay.environments import get_environment
from preplay.environments.support_desk import REPLIES, Intent
from preplay.environments.support_desk._simulator import BLOCK
from preplay.seeding import numpy_rng

NAMES = ("support_desk", "support_desk_long")


class OneSession:
    """The simulator's draws for one session, in the order in which both consume them."""

    def __init__(self, seed: int, row: int):
        self._rng, self._row = numpy_rng(seed, "support_desk", "world", 0), row

    def random(self, shape: tuple[int, int]) -> np.ndarray:
        return self._rng.random((BLOCK, shape[1]))[self._row : self._row + shape[0]]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.filterwarnings("ignore:.*render.*", "ignore:.*not the case for.*")
def test_gymnasium_checker(name):
    check_env(get_environment(name).gym(), skip_render_check=True)


@pytest.mark.parametrize("name", NAMES)
def test_simulator_and_gym_agree_to_the_letter(name):
    desk = get_environment(name)
    table = desk.simulate(desk.behaviour_policies()["apprentice"], 30, seed=3).to_pylist()
    env = desk.gym()
    for turn in table:
        if turn["turn"] == 0:
            env.np_random = OneSession(3, int(turn["session_id"].rsplit("-", 1)[1]))
            observation, _ = env.reset()
        assert observation == turn["observation"]
        observation, reward, terminated, truncated, _ = env.step(turn["action"])
        assert observation == turn["next_observation"]
        assert (reward, terminated, truncated) == (turn["reward"], turn["terminated"], turn["truncated"])


def test_texts_lie_in_the_spaces():
    env = get_environment("support_desk").gym()
    assert all(reply in env.action_space for replies in REPLIES for reply in replies)
    message, _ = env.reset(seed=1)
    while True:
        assert message in env.observation_space
        message, _, terminated, truncated, info = env.step(REPLIES[Intent.EMPATHISE][0])
        assert info["intent"] == "empathise"
        if terminated or truncated:
            return


def test_same_seed_same_conversation():
    env = get_environment("support_desk").gym()
    talks = []
    for _ in range(2):
        talk = [env.reset(seed=9)[0]]
        talk += [env.step(REPLIES[i][0])[0] for i in (Intent.ASK, Intent.DIAGNOSE)]
        talks.append(talk)
    assert talks[0] == talks[1]


def test_a_finished_session_must_be_reset():
    env = get_environment("support_desk").gym()
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step("Hello")
