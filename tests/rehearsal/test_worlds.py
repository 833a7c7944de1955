"""Tables, text models and bare dynamics behind one interface."""

import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Discrete

from preplay.errors import PreplayError
from preplay.policies import AgentState
from preplay.rehearsal import ActionChoices, DynamicsWorld, TabularWorld, action_count
from preplay.rollout import InitialStates

from ..rollout.ring import ACTIONS, BANK, PLACES, Ring, encoder
from ..rollout.ring import starts as ring_starts
from .conftest import LEFT, RIGHT, corridor


def test_optimal_values_by_hand():
    # three steps to go, gamma .5: from place 2 right is .5 (arrive in two steps); from 1 it is .25, from 0 nothing
    q = corridor().optimal_values(0.5, 3)
    assert q[3, RIGHT] == 1
    assert q[2, RIGHT] == 0.5
    assert q[1, RIGHT] == 0.25
    assert q[0, RIGHT] == 0
    assert q[3, LEFT] == 0.25  # there and back: reward in the third step


def test_counts_of_experience():
    # (0, right) seen three times: twice to 1, once to 0; (1, right) once, ending with reward 2
    world = TabularWorld.counted(
        2, 2, np.array([0, 0, 0, 1]), np.array([1, 1, 1, 1]), np.array([0.0, 1.0, 3.0, 2.0]),
        np.array([0, 1, 1, 1]), np.array([False, False, False, True]),
    )  # fmt: skip
    assert world.transition[0, 1] == pytest.approx([1 / 3, 2 / 3])
    assert world.reward[0, 1, 1] == 2.0
    assert world.terminated[1, 1, 1] == 1
    assert world.uncertainty == pytest.approx(np.array([[1, 0.5], [1, 1 / np.sqrt(2)]]))
    assert world.transition[1, 0].tolist() == [0, 1]  # never tried: stays


def test_table_draws_its_probabilities():
    world, rows = corridor(slip=0.25), 20_000
    noise = np.random.default_rng(0).standard_normal((rows, 1))
    after = world.step(np.full(rows, 2), np.full(rows, RIGHT), noise).state
    assert (after == 3).mean() == pytest.approx(0.75, abs=0.01)
    assert set(after.tolist()) == {1, 3}


def test_a_table_must_hold_probabilities():
    with pytest.raises(ValueError, match="sum to 1"):
        TabularWorld.exact(np.zeros((2, 1, 2)), np.zeros((2, 1, 2)), np.zeros((2, 1, 2)))


def test_text_world_steps_as_its_model_does(text_world, model, choices, logs, starts):
    rows = np.arange(6)
    action = np.array([0, 1, 2, 0, 1, 2])
    noise = np.random.default_rng(1).standard_normal((6, model.noise_dim))
    result = text_world.step(starts[rows], action, noise)
    initial = InitialStates.from_turns(logs, logs.session_starts[rows], history=0)
    direct = model.step(
        model.start(torch.from_numpy(initial.embeddings(initial.observation_id))),
        torch.from_numpy(choices.embeddings[action]),
        torch.from_numpy(noise).float(),
    )
    assert text_world.texts(result.state) == [model.texts[i] for i in direct.text_id.tolist()]
    assert result.reward == pytest.approx(direct.reward.numpy(), abs=1e-6)
    assert result.terminated == pytest.approx(direct.terminated_prob.numpy(), abs=1e-6)
    assert result.uncertainty == pytest.approx(direct.support_distance.numpy(), abs=1e-3)


def test_observation_changes_with_the_text_and_holds_the_share_of_the_horizon(text_world, starts, model):
    seen = text_world.observe(starts[:2])
    assert seen.shape == (2, *text_world.observation_space.shape)
    assert not np.array_equal(seen[0], seen[1])
    assert seen[:, -1].tolist() == [0, 0]
    noise = np.zeros((2, model.noise_dim))
    after = text_world.step(starts[:2], np.array([0, 0]), noise)
    assert text_world.observe(after.state)[:, -1] == pytest.approx(1 / model.horizon)


def test_text_sessions_are_cut_at_the_horizon(text_world, starts, model):
    state, noise = starts[:3], np.zeros((3, model.noise_dim))
    for turn in range(model.horizon):
        result = text_world.step(state, np.ones(3, int), noise)
        assert result.truncated.tolist() == [turn == model.horizon - 1] * 3
        state = result.state


def test_what_an_agent_sees_is_the_logged_state(text_world, logs):
    class Encoder:
        def encode(self, texts):
            return logs.bank.embeddings[[logs.bank.index[text] for text in texts]]

    rows = np.array([0, 1, 2])  # the first session has at least three turns
    assert logs.session_starts[1] >= 3
    table = logs.turns.to_pylist()
    pairs = [(r["observation"], r["action"]) for r in table]
    states = [AgentState(pairs[t][0], None, tuple(pairs[:t]), t) for t in rows.tolist()]
    logged = text_world.logged_states(InitialStates.from_turns(logs, rows, history=2))
    assert text_world.agent_states(states, Encoder()) == pytest.approx(logged, abs=1e-6)


def test_any_world_model_will_do():
    from preplay.rehearsal import TextWorld

    world = TextWorld(Ring(horizon=4), ActionChoices(tuple(ACTIONS), BANK.embeddings[:3]))
    state = world.logged_states(ring_starts([3, 4], turn=1))
    result = world.step(state, np.array([0, 1]), np.zeros((2, 1)))
    assert world.texts(state) == ["", ""]
    assert world.texts(result.state) == [PLACES[4], PLACES[4]]
    assert result.reward.tolist() == [4, 5]
    assert result.truncated.tolist() == [False, False]
    again = world.step(
        world.step(result.state, np.array([0, 0]), np.zeros((2, 1))).state, np.array([0, 0]), np.zeros((2, 1))
    )
    assert again.truncated.tolist() == [True, True]
    assert world.agent_states([AgentState(PLACES[3], "walk", turn=1)], encoder()).shape == (1, state.shape[1])


def test_choices_are_logged_actions_one_per_cluster(logs):
    choices = ActionChoices.clustered(logs, 3, seed=0)
    assert sorted(text.split()[0] for text in choices.texts) == ["left", "right", "stay"]
    for text, row in zip(choices.texts, choices.embeddings, strict=True):
        assert np.array_equal(row, logs.bank.embeddings[logs.bank.index[text]])
    assert choices.nearest(choices.embeddings).tolist() == [0, 1, 2]
    with pytest.raises(PreplayError, match="distinct actions"):
        ActionChoices.clustered(logs, 500, seed=0)
    with pytest.raises(PreplayError, match="hold no text"):
        ActionChoices.of_texts(["dance"], logs)


class Drift:
    """The next latent is the newest one plus the action plus a tenth of the noise."""

    noise_dim = 2

    def step(self, condition, noise):
        newest = condition[:, -1]
        return newest[:, :2] + newest[:, 2:] + 0.1 * noise


def far(condition, latent):
    return latent.sum(1), (latent.sum(1) > 3).double()


def test_any_dynamics_with_a_vector_of_actions():
    world = DynamicsWorld(Drift(), far, latent=2, actions=Box(-1, 1, (2,)), window=2, horizon=3)
    state = world.start(np.array([[0.0, 1.0]], np.float32))
    assert world.observe(state).tolist() == [[0, 1]]
    first = world.step(state, np.array([[1.0, 0.5]]), np.array([[1.0, 0.0]]))
    assert world.observe(first.state) == pytest.approx(np.array([[1.1, 1.5]]))
    assert first.reward == pytest.approx([2.6])
    assert first.terminated.tolist() == [0]
    second = world.step(first.state, np.array([[1.0, 1.0]]), np.zeros((1, 2)))
    assert second.terminated.tolist() == [1]
    assert not second.truncated[0]
    third = world.step(second.state, np.zeros((1, 2)), np.zeros((1, 2)))
    assert third.truncated.tolist() == [True]
    with pytest.raises(TypeError, match="discrete"):
        action_count(world)


def test_dynamics_remember_the_window_and_take_discrete_actions():
    class Older(Drift):
        def step(self, condition, noise):
            return (
                condition[:, 0, :2] + condition[:, -1, 2:4]
            )  # the older latent, plus the newest action's one-hot

    world = DynamicsWorld(Older(), far, latent=2, actions=Discrete(2), window=2)
    state = world.start(np.array([[5.0, 5.0]], np.float32))
    one = world.step(state, np.array([1]), np.zeros((1, 2)))
    assert world.observe(one.state).tolist() == [[0, 1]]  # nothing before the start
    two = world.step(one.state, np.array([0]), np.zeros((1, 2)))
    assert world.observe(two.state).tolist() == [[6, 5]]
    assert not two.truncated[0]
    assert action_count(world) == 2
