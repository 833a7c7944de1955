"""Short-term memory for policies: the newest observations as one."""

from collections import deque
from typing import Any

import gymnasium as gym
import numpy as np


class Recent(gym.Wrapper[np.ndarray, Any, np.ndarray, Any]):
    """A task whose observation is the ``frames`` newest ones, oldest first, side by side on the last axis.

    For policies that have no memory of their own in tasks that one observation does not tell. An episode begins with
    its first observation repeated. Images uint8 [H, W, C] become float32 [H, W, frames * C] between 0 and 1.

    RLlib builds it from ``env_config={"id": "CartPole-v1", "frames": 4}``; further keys go to ``gymnasium.make``.
    """

    def __init__(self, env_config: dict[str, Any]):
        options = dict(env_config)
        frames = options.pop("frames", 1)
        super().__init__(gym.make(options.pop("id"), **options))
        space = self.env.observation_space
        self._image = space.dtype == np.uint8
        low, high = (0.0, 1.0) if self._image else (space.low, space.high)  # type: ignore[attr-defined]
        low, high = (np.broadcast_to(bound, space.shape or ()) for bound in (low, high))
        low, high = (np.concatenate([bound] * frames, -1, dtype=np.float32) for bound in (low, high))
        self.observation_space = gym.spaces.Box(low, high, dtype=np.float32)
        self._newest: deque[np.ndarray] = deque(maxlen=frames)

    def reset(self, **kwargs: Any) -> tuple[np.ndarray, dict[str, Any]]:
        observation, info = self.env.reset(**kwargs)
        self._newest.extend([self._scaled(observation)] * (self._newest.maxlen or 1))
        return np.concatenate(self._newest, -1), info

    def step(self, action: Any) -> tuple[np.ndarray, Any, bool, bool, dict[str, Any]]:
        observation, reward, terminated, truncated, info = self.env.step(action)
        self._newest.append(self._scaled(observation))
        return np.concatenate(self._newest, -1), reward, terminated, truncated, info

    def _scaled(self, observation: Any) -> np.ndarray:
        values = np.asarray(observation, np.float32)
        return values / 255 if self._image else values
