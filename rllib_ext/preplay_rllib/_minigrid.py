"""MiniGrid as this package sees it: the 7×7 view as one-hot numbers, and cells as single codes.

A *code* is ``object * 18 + colour * 3 + state`` (0 = unseen), so that a view is uint8 [7, 7], indexed [x, y] with the
agent at (3, 6) looking towards y = 0.
"""

from typing import Any

import gymnasium as gym
import numpy as np
from minigrid.core.constants import COLOR_TO_IDX, OBJECT_TO_IDX, STATE_TO_IDX

OBJECTS, COLOURS, STATES = len(OBJECT_TO_IDX), len(COLOR_TO_IDX), len(STATE_TO_IDX)
TOKENS = OBJECTS + COLOURS + STATES
CODES = OBJECTS * COLOURS * STATES
VIEW = 7
VIEW_SIZE = VIEW * VIEW * TOKENS
UNSEEN, EMPTY = 0, OBJECT_TO_IDX["empty"] * COLOURS * STATES
LEFT, RIGHT, FORWARD = 0, 1, 2

OPTIMAL_RETURN = {
    "MiniGrid-Empty-5x5-v0": 0.955,
    "MiniGrid-Empty-8x8-v0": 0.961,
    "MiniGrid-DoorKey-5x5-v0": 0.965,
    "MiniGrid-DoorKey-6x6-v0": 0.969,
    "MiniGrid-LavaGapS5-v0": 0.945,
    "MiniGrid-MultiRoom-N2-S4-v0": 0.839,
    "MiniGrid-Unlock-v0": 0.970,
}
"""Mean return of shortest paths found by breadth-first search."""


def _tables() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    code = np.arange(CODES)
    kind, colour, state = code // (COLOURS * STATES), code // STATES % COLOURS, code % STATES
    one_hot = np.concatenate([np.eye(OBJECTS)[kind], np.eye(COLOURS)[colour], np.eye(STATES)[state]], 1)
    shut = (kind == OBJECT_TO_IDX["door"]) & (state != STATE_TO_IDX["open"])
    opaque = (kind == OBJECT_TO_IDX["wall"]) | shut
    walkable = np.isin(kind, [OBJECT_TO_IDX[name] for name in ("empty", "floor", "goal", "lava")])
    return one_hot.astype(np.float32), opaque, walkable | ((kind == OBJECT_TO_IDX["door"]) & ~shut)


ONE_HOT, OPAQUE, WALKABLE = _tables()
"""Per code: float32 [CODES, TOKENS] its three one-hot parts; does it hide what is behind; can it be walked on."""


def encode(image: np.ndarray) -> np.ndarray:
    """uint8 [..., 7, 7] codes of MiniGrid's symbolic images uint8 [..., 7, 7, 3]."""
    kind, colour, state = np.moveaxis(image.astype(np.int64), -1, 0)
    return (kind * (COLOURS * STATES) + colour * STATES + state).astype(np.uint8)


def flatten(codes: np.ndarray) -> np.ndarray:
    """The policy's observation float32 [..., 980] of views uint8 [..., 7, 7]."""
    return ONE_HOT[codes].reshape(*codes.shape[:-2], VIEW_SIZE)


def unflatten(observations: np.ndarray) -> np.ndarray:
    """Views uint8 [..., 7, 7] of observations float32 [..., 980]."""
    cells = observations.reshape(*observations.shape[:-1], VIEW, VIEW, TOKENS)
    kind = cells[..., :OBJECTS].argmax(-1)
    colour = cells[..., OBJECTS : OBJECTS + COLOURS].argmax(-1)
    state = cells[..., OBJECTS + COLOURS :].argmax(-1)
    return encode(np.stack([kind, colour, state], -1))


class MiniGrid(gym.Wrapper[np.ndarray, Any, dict[str, Any], Any]):
    """A MiniGrid task whose observation is the agent's view, float32 [980].

    RLlib builds it from ``env_config={"id": "MiniGrid-DoorKey-5x5-v0"}``; further keys go to ``gymnasium.make``.
    """

    def __init__(self, env_config: dict[str, Any]):
        import minigrid  # noqa: F401 - registers the tasks

        super().__init__(gym.make(env_config["id"], **{k: v for k, v in env_config.items() if k != "id"}))
        self.observation_space = gym.spaces.Box(0.0, 1.0, (VIEW_SIZE,), np.float32)

    def reset(self, **kwargs: Any) -> tuple[np.ndarray, dict[str, Any]]:
        observation, info = self.env.reset(**kwargs)
        return flatten(encode(observation["image"])), info

    def step(self, action: Any) -> tuple[np.ndarray, Any, bool, bool, dict[str, Any]]:
        observation, reward, terminated, truncated, info = self.env.step(action)
        return flatten(encode(observation["image"])), reward, terminated, truncated, info
