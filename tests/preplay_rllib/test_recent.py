"""What a policy without memory sees: the newest observations side by side."""

import gymnasium as gym
import numpy as np

from preplay_rllib import Recent


class _Counter(gym.Env):
    """Step t shows t, as a vector or as an image whose pixels are all 10 t."""

    def __init__(self, image: bool = False):
        self._shape, self._image = ((4, 3, 2), True) if image else ((1,), False)
        self.observation_space = gym.spaces.Box(0, 255, self._shape, np.uint8 if image else np.float32)
        self.action_space = gym.spaces.Discrete(2)

    def reset(self, **kwargs):
        self._t = 0
        return self._seen(), {}

    def step(self, action):
        self._t += 1
        return self._seen(), 0.0, False, False, {}

    def _seen(self):
        return np.full(self._shape, self._t * (10 if self._image else 1), self.observation_space.dtype)


gym.register("preplay-Counter-v0", entry_point=_Counter)


def test_an_episode_begins_with_its_first_observation_repeated():
    env = Recent({"id": "preplay-Counter-v0", "frames": 3})
    shown = [env.reset()[0]] + [env.step(0)[0] for _ in range(3)]
    assert np.array_equal(shown, [[0, 0, 0], [0, 0, 1], [0, 1, 2], [1, 2, 3]])
    assert np.array_equal(env.reset()[0], [0, 0, 0])  # nothing of the episode before
    assert env.observation_space.contains(shown[-1])


def test_images_are_stacked_by_channel_between_zero_and_one():
    env = Recent({"id": "preplay-Counter-v0", "frames": 2, "image": True})
    env.reset()
    shown = env.step(0)[0]
    assert env.observation_space == gym.spaces.Box(0.0, 1.0, (4, 3, 4), np.float32)
    assert np.allclose(shown[..., :2], 0)
    assert np.allclose(shown[..., 2:], 10 / 255)
