"""Fitted Q evaluation of a policy that is asked: in which states, and that leaving sessions out changes no more."""

from types import SimpleNamespace

import numpy as np
import pytest

from preplay.embedding import CachedEncoder, EncoderConfig
from preplay.estimators import FQEConfig, SessionBatch
from preplay.pipeline import PreplayConfig
from preplay.pipeline._config import EvaluationConfig
from preplay.pipeline._fqe import ask_and_estimate
from preplay.pipeline._logged import some_sessions, value_features
from preplay.pipeline._runs import runner
from preplay.policies import ActionBatch
from preplay.world_model import FeatureConfig, OptimiserConfig, WorldModelConfig, train_world_model
from tests.world_model.conftest import embedded, make_bank, simulate

QUICK = OptimiserConfig(steps=50)
SESSIONS = 40


class Asked:
    """Acts right, says nothing about probabilities, and remembers where it was asked."""

    name, reads, deterministic = "asked", 1, True

    def __init__(self):
        self.states = []

    def act(self, states, rng):
        self.states += states
        return ActionBatch(["right (0)"] * len(states))


@pytest.fixture(scope="module")
def ring():
    rng = np.random.default_rng(1)
    bank = make_bank(rng)
    data = embedded(simulate(SESSIONS, rng), bank, rng)
    config = WorldModelConfig(
        dynamics="knn",
        features=FeatureConfig(phi=4, components=8, action_clusters=3, optimiser=QUICK),
        outcome=QUICK,
    )
    return data, train_world_model(data, config, seed=0)


def context_of(data, trained, asked_sessions: int) -> SimpleNamespace:
    evaluation = EvaluationConfig(
        resamples=100, asked_sessions=asked_sessions, fqe=FQEConfig(members=2, iterations=3, steps=10)
    )
    return SimpleNamespace(
        config=PreplayConfig(evaluation=evaluation),
        data=data,
        encoder=CachedEncoder(EncoderConfig(model="there is none"), data.bank, expect=data.fingerprint),
        model=trained.model,
        turns=trained.turns,
        features=value_features(trained.model, data, trained.turns),
        gamma=0.9,
    )


def batch_of(data, log_ratio=None) -> SessionBatch:
    reward = data.turns["reward"].to_numpy()
    return SessionBatch(data.session_starts, reward, 0.9, log_ratio=log_ratio)


def test_a_policy_is_asked_in_the_states_of_so_many_sessions(ring):
    data, _ = ring
    policy, context = Asked(), context_of(*ring, asked_sessions=10)
    found = ask_and_estimate(context, policy, batch_of(data), runner(context, "asked"))
    keep = some_sessions(data, 10, 0)
    turns = int(np.diff(data.session_starts)[keep].sum())
    assert len(policy.states) == turns + 10  # one more behind each session's end
    assert found["fqe.dm"].n_sessions == 10
    assert found["fqe.dm"].n_turns == turns


def test_the_sessions_left_are_fitted_as_if_there_were_no_others(ring):
    data, trained = ring
    keep = some_sessions(data, 10, 0)
    some = context_of(*ring, asked_sessions=10)
    alone = context_of(data.select_sessions(keep), trained, asked_sessions=10)
    rows = np.repeat(keep, np.diff(data.session_starts))
    alone.turns = SimpleNamespace(
        reward=trained.turns.reward[rows], terminated=trained.turns.terminated[rows]
    )
    alone.features = type(some.features)(*(values[rows] for values in vars(some.features).values()))
    found = [ask_and_estimate(c, Asked(), batch_of(c.data), runner(c, "asked")) for c in (some, alone)]
    assert found[0]["fqe.dm"] == found[1]["fqe.dm"]


def test_with_probabilities_all_sessions_are_used(ring):
    data, _ = ring
    policy, context = Asked(), context_of(*ring, asked_sessions=10)
    batch = batch_of(data, np.zeros(len(data)))
    found = ask_and_estimate(context, policy, batch, runner(context, "asked"))
    assert len(policy.states) == len(data) + SESSIONS
    assert {name: e.n_sessions for name, e in found.items()} == dict.fromkeys(
        ("fqe.dm", "fqe.dr", "fqe.wdr"), 40
    )
