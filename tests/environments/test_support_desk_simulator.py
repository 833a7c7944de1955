"""Logs and truths: reproducible, aligned, exact propensities, standard errors that hold."""

import itertools

import numpy as np
import pytest

from preplay.environments import get_environment, truth
from preplay.environments.support_desk._simulator import BLOCK
from preplay.errors import PreplayError
from preplay.logs import TURN_SCHEMA
from preplay.policies import ActionBatch, AgentState

NAMES = ("support_desk", "support_desk_long")


class Silent:
    """A policy without propensities that always asks."""

    name, reads, deterministic = "silent", 0, True

    def act(self, states, rng):
        return ActionBatch(["What happened?"] * len(states))


@pytest.fixture(scope="module", params=NAMES)
def logged(request):
    desk = get_environment(request.param)
    return desk, desk.simulate(desk.behaviour_policies()["by_the_book"], 120, seed=6)


def test_same_seed_same_table(logged):
    desk, table = logged
    policy = desk.behaviour_policies()["by_the_book"]
    assert desk.simulate(policy, 120, seed=6).equals(table)
    assert not desk.simulate(policy, 120, seed=7).equals(table)


def test_a_session_opens_the_same_among_fewer_others():
    desk = get_environment("support_desk")
    few, many = (desk.simulate(desk.policies()["expert"], n, seed=1).to_pylist() for n in (50, 80))
    opening = {row["session_id"]: row["observation"] for row in many if row["turn"] == 0}
    assert all(opening[row["session_id"]] == row["observation"] for row in few if row["turn"] == 0)


def test_table_follows_the_schema_and_is_aligned(logged):
    desk, table = logged
    assert table.schema.equals(TURN_SCHEMA, check_metadata=True)
    rows = table.to_pylist()
    assert len({row["session_id"] for row in rows}) == 120
    for before, after in itertools.pairwise(rows):
        if before["session_id"] == after["session_id"]:
            assert after["turn"] == before["turn"] + 1
            assert after["observation"] == before["next_observation"]
            assert not before["terminated"]
            assert not before["truncated"]
        else:
            assert after["turn"] == 0
            assert before["terminated"] != before["truncated"]
    for row in rows:
        assert row["truncated"] == (row["turn"] == desk.horizon - 1 and not row["terminated"])


def test_propensities_are_those_of_the_policy(logged):
    desk, table = logged
    policy, history, states = desk.behaviour_policies()["by_the_book"], [], []
    for row in table.to_pylist():
        history = [] if row["turn"] == 0 else history
        seen = tuple(history[-policy.reads :])
        states.append(AgentState(row["observation"], row["task"], seen, row["turn"]))
        history.append((row["observation"], row["action"]))
    exact = policy.log_prob(states, table["action"].to_pylist())
    assert table["behavior_logprob"].to_numpy() == pytest.approx(exact, abs=1e-12)


def test_unknown_propensities_are_null():
    desk = get_environment("support_desk")
    table = desk.simulate(Silent(), 20, seed=0)
    assert table["behavior_logprob"].null_count == len(table)


def test_long_rewards_come_at_the_end_only():
    desk = get_environment("support_desk_long")
    for row in desk.simulate(desk.policies()["adaptive"], 100, seed=0).to_pylist():
        assert row["reward"] == 0.0 or row["terminated"] or row["truncated"]


def test_truth_agrees_with_the_logged_returns():
    desk = get_environment("support_desk")
    policy = desk.policies()["adaptive"]
    rows = desk.simulate(policy, 500, seed=8).to_pylist()
    value = sum(desk.gamma ** row["turn"] * row["reward"] for row in rows) / 500
    result = truth(policy, desk, sessions=500, seed=8)
    assert result.value == pytest.approx(value, abs=1e-12)
    assert result.mean_length == len(rows) / 500
    assert result.resolved == sum(row["terminated"] and row["reward"] > 0 for row in rows) / 500


def test_standard_error_is_the_spread_of_repeated_truths():
    desk = get_environment("support_desk")
    runs = [truth(desk.policies()["escalator"], desk, sessions=400, seed=seed) for seed in range(25)]
    spread = np.std([run.value for run in runs], ddof=1)
    # 25 runs: the spread estimate lies within 0.6 to 1.5 of the error in all but ~0.3 % of cases.
    assert 0.6 < spread / np.mean([run.standard_error for run in runs]) < 1.5


def test_gamma_can_be_chosen():
    desk = get_environment("support_desk")
    undiscounted = truth(desk.policies()["expert"], desk, sessions=300, gamma=1.0)
    assert undiscounted.value > truth(desk.policies()["expert"], desk, sessions=300).value
    assert undiscounted.gamma == 1.0


def test_more_than_one_block():
    desk = get_environment("support_desk")
    table = desk.simulate(desk.policies()["random"], BLOCK + 3, seed=0)
    ids = table["session_id"].to_pylist()
    assert len(set(ids)) == BLOCK + 3
    assert ids == sorted(ids)


@pytest.mark.parametrize("sessions", [0, -5])
def test_no_sessions_is_an_error(sessions):
    desk = get_environment("support_desk")
    with pytest.raises(PreplayError, match="cannot be simulated"):
        desk.simulate(desk.policies()["expert"], sessions, seed=0)


def test_unknown_environment_lists_the_known_ones():
    with pytest.raises(PreplayError, match="support_desk, support_desk_long"):
        get_environment("support-desk")
