"""Policies: exact propensities, text only, independent of batching, values spread, blind ones lose."""

import numpy as np
import pytest
from scipy.stats import chisquare

from preplay.environments import get_environment, truth
from preplay.environments.support_desk import DEFAULT, REPLIES
from preplay.environments.support_desk._customer_texts import TEXT_DRAWS, render
from preplay.environments.support_desk._dynamics import START_DRAWS, STEP_DRAWS, start, step
from preplay.policies import AgentState, StochasticPolicy

DESK = get_environment("support_desk")
POLICIES = DESK.policies()
ALL_REPLIES = [reply for replies in REPLIES for reply in replies]


def logged_states(count: int = 200) -> list[AgentState]:
    """States with a history of up to two turns, from the logs of a behaviour policy."""
    states, history = [], []
    for turn in DESK.simulate(POLICIES["apprentice"], 80, seed=2).to_pylist()[:count]:
        history = [] if turn["turn"] == 0 else history
        states.append(AgentState(turn["observation"], turn["task"], tuple(history[-2:]), turn["turn"]))
        history.append((turn["observation"], turn["action"]))
    return states


STATES = logged_states()


@pytest.mark.parametrize("name", POLICIES)
def test_propensities_sum_to_one(name):
    for state in STATES[:25]:
        logprobs = POLICIES[name].log_prob([state] * len(ALL_REPLIES), ALL_REPLIES)
        assert np.exp(logprobs).sum() == pytest.approx(1.0, abs=1e-12)
        assert np.isfinite(logprobs).all()


@pytest.mark.parametrize("name", ["expert", "adaptive", "apprentice", "scripted_loop"])
def test_texts_are_drawn_as_often_as_log_prob_says(name):
    state = STATES[7]
    drawn = POLICIES[name].act([state] * 24_000, np.random.default_rng(4))
    expected = 24_000 * np.exp(POLICIES[name].log_prob([state] * len(ALL_REPLIES), ALL_REPLIES))
    index = {reply: i for i, reply in enumerate(ALL_REPLIES)}
    counts = np.bincount([index[action] for action in drawn.actions], minlength=len(ALL_REPLIES))
    rare = expected < 5
    merged = [np.append(x[~rare], x[rare].sum()) for x in (counts, expected)]
    merged = [x[merged[1] > 0] for x in merged]
    assert chisquare(*merged).pvalue > 1e-4  # one false alarm in 10,000 random seeds; the seed is fixed


@pytest.mark.parametrize("name", POLICIES)
def test_act_reports_its_own_log_prob(name):
    policy = POLICIES[name]
    assert isinstance(policy, StochasticPolicy)
    batch = policy.act(STATES, np.random.default_rng(0))
    assert batch.logprobs == pytest.approx(policy.log_prob(STATES, batch.actions), abs=1e-12)


def test_a_text_nobody_says_is_impossible():
    assert POLICIES["expert"].log_prob(STATES[:1], ["Colourless green ideas."])[0] == -np.inf


@pytest.mark.parametrize("name", POLICIES)
def test_a_row_depends_only_on_its_own_state_and_draws(name):
    policy = POLICIES[name]
    one, two = np.random.default_rng(3), np.random.default_rng(3)
    mixed = [STATES[0], *reversed(STATES[1:50])]
    assert policy.act(STATES[:50], one).actions[0] == policy.act(mixed, two).actions[0]
    assert one.random() == two.random()  # both consumed the same number of draws


def test_equal_texts_give_equal_behaviour_whatever_is_hidden():
    # Draws of .99 leave every cue out, so that hidden states that differ in all that matters read the same.
    state = start(np.array([[0.1, 0.1, 0.1, 0.5, 0.5, 0.5], [0.9, 0.9, 0.9, 0.5, 0.5, 0.5]]), DEFAULT)
    texts = render(state, np.array([6, 6]), np.full((2, TEXT_DRAWS), 0.99), DEFAULT)
    assert state.issue[0] != state.issue[1]
    assert state.patience[0] != state.patience[1]
    assert texts[0] == texts[1]
    for policy in POLICIES.values():
        first, second = policy.intent_probabilities([AgentState(text) for text in texts])
        assert (first == second).all()


def test_policies_see_no_more_history_than_they_say():
    long = AgentState(STATES[9].observation, None, (("I was charged twice.", "Hello"),) * 5, 5)
    for policy in POLICIES.values():
        short = AgentState(long.observation, None, long.history[-policy.reads :] if policy.reads else (), 5)
        assert (policy.intent_probabilities([long]) == policy.intent_probabilities([short])).all()


@pytest.mark.parametrize("name", DESK.behaviour_policies())
def test_behaviour_explores_every_intent_everywhere(name):
    assert POLICIES[name].intent_probabilities(STATES).min() >= 0.05 - 1e-12


def test_policies_differ_clearly():
    probabilities = np.stack([p.intent_probabilities(STATES) for p in POLICIES.values()])
    distance = 0.5 * np.abs(probabilities[:, None] - probabilities[None]).sum(axis=3).mean(axis=2)
    assert len(POLICIES) == 16
    assert distance[np.triu_indices(len(POLICIES), 1)].min() > 0.1  # mean total variation of any two


def test_values_spread_evenly_over_the_range():
    values = sorted(truth(p, DESK, sessions=1_000, seed=1).value for p in DESK.target_policies().values())
    assert values[0] < -0.8
    assert values[-1] > 0.85
    assert np.diff(values).max() < 0.4


def blind_value(plan: np.ndarray, sessions: int, seed: int) -> float:
    """Value of drawing intents from ``plan`` [horizon, 8] without reading anything."""
    rng = np.random.default_rng(seed)
    state, rows, value = start(rng.random((sessions, START_DRAWS)), DEFAULT), np.arange(sessions), 0.0
    for turn, weights in enumerate(plan):
        picks, draws = rng.random(sessions)[rows], rng.random((sessions, STEP_DRAWS))[rows]
        intents = np.minimum(np.searchsorted(weights.cumsum(), picks, side="right"), 7)
        result = step(state, intents, draws, DEFAULT)
        value += DEFAULT.gamma**turn * float(result.reward.sum()) / sessions
        running = ~(result.terminated | result.truncated)
        rows, state = rows[running], result.state.select(running)
    return value


def best_script(seed: int) -> float:
    """Coordinate search over open-loop scripts of 12 intents, scored on fresh sessions."""
    rng, choices = np.random.default_rng(seed), np.eye(8)
    script = rng.integers(0, 8, DEFAULT.horizon)
    best = blind_value(choices[script], 1_000, seed)
    for turn in [*range(DEFAULT.horizon)] * 2:
        for intent in range(8):
            other = script.copy()
            other[turn] = intent
            if (value := blind_value(choices[other], 1_000, seed)) > best:
                script, best = other, value
    return blind_value(choices[script], 4_000, seed + 100)


def test_no_policy_wins_by_ignoring_the_text():
    mixes = [*np.eye(8), *np.random.default_rng(0).dirichlet(np.full(8, 0.5), 100)]
    constant = max(blind_value(np.tile(mix, (DEFAULT.horizon, 1)), 2_000, 0) for mix in mixes)
    scripted = max(best_script(seed) for seed in range(2))
    readers = {n: truth(p, DESK, sessions=1_000).value for n, p in DESK.target_policies().items()}
    assert max(constant, scripted) < 0.1
    assert max(readers.values()) > max(constant, scripted) + 0.7
    assert sum(value > max(constant, scripted) for value in readers.values()) >= 5


def test_memory_pays_in_the_long_variant():
    long = get_environment("support_desk_long")
    policies = long.target_policies()
    results = {
        n: truth(policies[n], long, sessions=1_500) for n in ("diagnose_first", "diagnose_first_with_notes")
    }
    short, notes = results.values()
    error = np.hypot(short.standard_error, notes.standard_error)
    assert notes.value - short.value > 3 * error


def test_weights_that_do_not_sum_to_one_are_refused():
    from preplay.environments.support_desk import DeskPolicy, Intent

    with pytest.raises(ValueError, match="do not sum to 1"):
        DeskPolicy("odd", lambda cues: {Intent.ASK: 0.7}).act(STATES[:1], np.random.default_rng(0))
