"""A corridor that can be computed by hand, and a text world model trained on a ring of eight places."""

import numpy as np
import pytest

from preplay.rehearsal import ActionChoices, TabularWorld, TextWorld
from preplay.rollout import InitialStates
from preplay.world_model import FeatureConfig, OptimiserConfig, WorldModelConfig, train_world_model

from ..world_model.conftest import embedded, make_bank, simulate

LEFT, RIGHT = 0, 1
QUICK = OptimiserConfig(steps=300, learning_rate=1e-3, ema=0.99)


def corridor(length: int = 5, *, slip: float = 0.0, cost: float = 0.0) -> TabularWorld:
    """Places 0 .. length - 1; arriving at the last one gives 1 and ends it, any other step costs ``cost``.

    A step goes the other way with probability ``slip``; the left wall holds.
    """
    transition = np.zeros((length, 2, length))
    for place in range(length):
        left, right = max(place - 1, 0), min(place + 1, length - 1)
        transition[place, LEFT, left] += 1 - slip
        transition[place, LEFT, right] += slip
        transition[place, RIGHT, right] += 1 - slip
        transition[place, RIGHT, left] += slip
    arrived = np.zeros((length, 2, length))
    arrived[..., -1] = 1
    return TabularWorld.exact(transition, arrived - cost * (1 - arrived), arrived)


@pytest.fixture(scope="session")
def logs():
    rng = np.random.default_rng(0)
    return embedded(simulate(300, rng), make_bank(rng), rng)


@pytest.fixture(scope="session")
def model(logs):
    features = FeatureConfig(phi=8, components=16, action_clusters=3, optimiser=QUICK)
    config = WorldModelConfig(features=features, outcome=QUICK, dynamics="knn", device="cpu")
    return train_world_model(logs, config, seed=0).model


@pytest.fixture(scope="session")
def choices(logs):
    return ActionChoices.of_texts(["left (0)", "stay (0)", "right (0)"], logs)


@pytest.fixture(scope="session")
def text_world(model, choices):
    return TextWorld(model, choices)


@pytest.fixture(scope="session")
def starts(text_world, logs):
    return text_world.logged_states(InitialStates.from_turns(logs, logs.session_starts[:-1], history=1))
