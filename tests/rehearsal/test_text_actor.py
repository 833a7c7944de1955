"""From logs to a policy that rehearses in text: the cloned base policy, the actor, and when it imagines."""

import numpy as np
import pytest

from preplay.errors import PreplayError
from preplay.policies import AgentState, Policy
from preplay.rehearsal import (
    ActionChoices,
    Aim,
    DecideNow,
    EachActionThen,
    EveryNSteps,
    Horizon,
    Rehearsal,
    RehearsalManager,
    Scene,
    TextActor,
    TextWorld,
    WhenUncertain,
    draw_by,
    fit_logged_policy,
)

from ..world_model.conftest import WORDINGS, embedded, simulate

LEFT, STAY, RIGHT = range(3)


class BankEncoder:
    """Looks embeddings up in the logs' bank."""

    def __init__(self, bank):
        self.bank, self.fingerprint = bank, None

    def encode(self, texts):
        return self.bank.embeddings[[self.bank.index[text] for text in texts]]


@pytest.fixture(scope="module")
def prior(text_world, logs):
    rng = np.random.default_rng(7)
    mostly_right = embedded(simulate(200, rng, right=0.8), logs.bank, rng)
    return fit_logged_policy(text_world, mostly_right, seed=0, history=1)


def actor(text_world, logs, prior, **how) -> TextActor:
    rehearsal = Rehearsal(
        EachActionThen(draw_by(prior)),
        horizon=Horizon(((0, 6),)),
        aim=Aim(gamma=0.9, particles=40),
        **({"trigger": EveryNSteps(1)} | how),
    )
    decide = DecideNow(RehearsalManager(text_world, rehearsal, seed=0), draw_by(prior), together=3)
    return TextActor("rehearsed", text_world, BankEncoder(logs.bank), decide)


def test_the_base_policy_does_what_the_logs_did(text_world, logs, starts, prior):
    p = prior(text_world.observe(starts))
    assert p.sum(1) == pytest.approx(np.ones(len(starts)))
    assert p.mean(0) == pytest.approx([0.1, 0.1, 0.8], abs=0.1)


def test_draws_follow_the_probabilities():
    policy = draw_by(lambda seen: np.tile([0.2, 0.0, 0.8], (len(seen), 1)))
    drawn = policy(np.zeros((5, 1)), np.array([0.0, 0.19, 0.21, 0.5, 0.999]))
    assert drawn.tolist() == [0, 0, 2, 2, 2]
    mixed = draw_by(lambda seen: np.tile([1.0, 0.0], (len(seen), 1)), uniform_share=0.5)
    assert mixed(np.zeros((2, 1)), np.array([0.7, 0.8])).tolist() == [0, 1]


def test_a_choice_nobody_made_is_next_to_impossible(model, logs):
    words = ["left (0)", "stay (0)", "right (0)", "at 3 (0)"]
    world = TextWorld(model, ActionChoices.of_texts(words, logs))
    policy = fit_logged_policy(world, logs, seed=0, history=1)
    seen = np.zeros((1, world.observation_space.shape[0]))
    assert policy(seen)[0, 3] < 1e-6
    with pytest.raises(PreplayError, match="nothing to choose"):
        fit_logged_policy(TextWorld(model, ActionChoices.of_texts(["left (0)"], logs)), logs, seed=0)


def test_two_choices_work_too(model, logs):
    world = TextWorld(model, ActionChoices.of_texts(["left (0)", "right (0)"], logs))
    rng = np.random.default_rng(3)
    mostly_right = embedded(simulate(100, rng, right=0.9), logs.bank, rng)
    policy = fit_logged_policy(world, mostly_right, seed=0, history=1)
    assert policy(np.zeros((1, world.observation_space.shape[0])))[0, 1] > 0.6


def test_rehearsal_decides_for_the_short_way_round_the_ring(text_world, logs, prior):
    """Next to place 0 the way there is clear, whatever the logs' agents mostly did."""
    it = actor(text_world, logs, prior)
    assert isinstance(it, Policy)
    states = [AgentState(f"at {place} ({word})") for place in (1, 7) for word in range(WORDINGS)]
    said = [text.split()[0] for text in it.act(states, np.random.default_rng(0)).actions]
    assert said[:WORDINGS].count("left") >= WORDINGS - 1
    assert said[WORDINGS:].count("right") >= WORDINGS - 1
    assert it.choose.manager.real_steps == len(states)


def test_without_a_reason_to_imagine_the_base_policy_acts(text_world, logs, prior):
    it = actor(text_world, logs, prior, trigger=WhenUncertain(1e9))
    states = [AgentState(f"at {place} (0)") for place in range(1, 8)]
    uniform = np.random.default_rng(5).random(len(states))
    base = draw_by(prior)(text_world.observe(text_world.agent_states(states, it.encoder)), uniform)
    said = it.act(states, np.random.default_rng(5)).actions
    assert said == [text_world.choices.texts[i] for i in base.tolist()]
    assert it.choose.manager.decisions == 0


def test_only_likely_first_actions_are_tried(text_world, starts, prior):
    scene = Scene(text_world, starts[:4], 2)
    found = EachActionThen(draw_by(prior), prior, most=2).propose(scene)
    likely = np.argsort(-prior(text_world.observe(starts[:4])), axis=1)[:, :2]
    assert np.array_equal(found.first, likely)
    assert found.value.shape == (4, 2)
