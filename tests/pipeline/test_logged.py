"""What policies and value functions see of the logs."""

import numpy as np
import pyarrow as pa
import pytest

from preplay.pipeline._logged import log_ratios, logged_states, value_features
from preplay.policies import ActionBatch
from preplay.world_model import FeatureConfig, OptimiserConfig, WorldModelConfig, train_world_model
from tests.world_model.conftest import embedded, make_bank, simulate

QUICK = OptimiserConfig(steps=50)


@pytest.fixture(scope="module")
def ring():
    rng = np.random.default_rng(1)
    bank = make_bank(rng)
    return embedded(simulate(30, rng), bank, rng)


class AlwaysRight:
    name, reads, deterministic = "right", 1, False

    def act(self, states, rng):
        return ActionBatch(["right (0)"] * len(states))

    def log_prob(self, states, actions):
        return np.array([0.0 if action.startswith("right") else -np.inf for action in actions])


def test_states_by_hand(ring):
    states = logged_states(ring, reads=2)
    rows = ring.turns.to_pylist()
    first, end = (int(x) for x in ring.session_starts[[3, 4]])
    third = states.before[first + 2]
    assert third.turn == 2
    assert third.observation == rows[first + 2]["observation"]
    assert third.history == tuple((r["observation"], r["action"]) for r in rows[first : first + 2])
    assert states.before[first].history == ()
    behind = states.after_last[3]
    assert behind.turn == end - first
    assert behind.observation == rows[end - 1]["next_observation"]
    assert behind.history[-1] == (rows[end - 1]["observation"], rows[end - 1]["action"])
    assert len(states.before) == len(ring)


def test_log_ratios_need_both_sides(ring):
    assert log_ratios(ring, AlwaysRight()) is None
    at = ring.turns.schema.get_field_index("behavior_logprob")
    logged = ring.turns.set_column(at, ring.turns.field(at), pa.array(np.full(len(ring), np.log(1 / 3))))
    ring2 = type(ring)(**{**vars_of(ring), "turns": logged})
    ratios = log_ratios(ring2, AlwaysRight())
    right = np.array([action.startswith("right") for action in logged["action"].to_pylist()])
    assert ratios is not None
    assert ratios[right] == pytest.approx(np.log(3))
    assert np.isneginf(ratios[~right]).all()


def vars_of(data):
    names = ("turns", "bank", "task_id", "observation_id", "action_id", "next_observation_id", "fingerprint")
    return {name: getattr(data, name) for name in names}


@pytest.mark.parametrize("window", [1, 2, 3])
def test_the_state_after_a_turn_is_the_state_before_the_next(ring, window):
    config = WorldModelConfig(
        dynamics="knn",
        window=window,
        features=FeatureConfig(phi=4, components=8, action_clusters=3, optimiser=QUICK),
        outcome=QUICK,
    )
    trained = train_world_model(ring, config, seed=0)
    features = value_features(trained.model, ring, trained.turns)
    same = np.flatnonzero(trained.turns.session[1:] == trained.turns.session[:-1])
    assert features.after[same] == pytest.approx(features.state[same + 1], abs=1e-4)
    assert features.action.shape == (len(ring), 4)
