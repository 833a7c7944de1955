"""Policies written in Python: every accepted form, and an answer for every wrong one."""

import numpy as np
import pytest

from preplay.environments import get_environment
from preplay.errors import PreplayError
from preplay.policies import AgentState, AnswerCache, FunctionPolicy, Policy, load_policy

MODULE = """
from preplay.policies import ActionBatch, AgentState

calls = []

def by_text(state_text: str) -> str:
    calls.append(state_text)
    return "refund" if "charged" in state_text else "hello"

def by_state(state: AgentState) -> str:
    return f"turn {state.turn}, saw {len(state.history)}"

by_state.reads = 1

def moody(state_text):
    calls.append(state_text)
    return str(len(calls))

moody.deterministic = False

class Polite:
    name, reads, deterministic = "polite", 0, True

    def act(self, states, rng):
        return ActionBatch(["please"] * len(states))

class Needy(Polite):
    def __init__(self, model):
        self.model = model

class Shapeless:
    name = "shapeless"

polite = Polite()
number = 7

def wrong_type(state_text):
    return 42

def two(first, second):
    return ""

def none():
    return ""
"""


@pytest.fixture(autouse=True)
def agents(tmp_path, monkeypatch):
    (tmp_path / "my_agents.py").write_text(MODULE)
    (tmp_path / "broken_agents.py").write_text("def oops(:\n")
    (tmp_path / "needs_agents.py").write_text("import a_module_that_is_not_there\n")
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("my_agents", "broken_agents", "needs_agents"):
        monkeypatch.delitem(__import__("sys").modules, name, raising=False)


def act(policy: Policy, *states: AgentState) -> list[str]:
    return policy.act(states, np.random.default_rng(0)).actions


def test_function_of_the_text_is_asked_once_per_distinct_text():
    policy = load_policy("python:my_agents:by_text")
    import my_agents  # type: ignore[import-not-found]

    states = [AgentState("I was charged twice.", turn=t) for t in range(3)] + [AgentState("Hi.")]
    assert act(policy, *states) == ["refund", "refund", "refund", "hello"]
    assert act(policy, *states[::-1]) == ["hello", "refund", "refund", "refund"]
    assert my_agents.calls == ["[observation] I was charged twice.", "[observation] Hi."]
    assert (policy.reads, policy.deterministic) == (2, True)
    assert policy.name == "my_agents:by_text"  # two modules may both call their function act


def test_function_of_the_state_sees_turn_and_history():
    policy = load_policy("python:my_agents:by_state")
    assert policy.reads == 1
    assert act(policy, AgentState("a", turn=4), AgentState("a", history=(("b", "c"),), turn=5)) == [
        "turn 4, saw 0",
        "turn 5, saw 1",
    ]


def test_a_function_that_varies_is_asked_every_time():
    policy = load_policy("python:my_agents:moody")
    assert not policy.deterministic
    assert act(policy, AgentState("a"), AgentState("a")) == ["1", "2"]
    with pytest.raises(ValueError, match="cannot be cached"):
        AnswerCache(policy)


@pytest.mark.parametrize("name", ["Polite", "polite"])
def test_class_and_instance(name):
    policy = load_policy(f"python:my_agents:{name}")
    assert policy.name == "polite"
    assert act(policy, AgentState("a")) == ["please"]


def test_caching_leaves_the_random_stream_alone():
    used, untouched = np.random.default_rng(5), np.random.default_rng(5)
    load_policy("python:my_agents:by_text").act([AgentState("a")], used)
    assert used.random() == untouched.random()


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("python:my_agents", "python:module:attribute"),
        ("python::by_text", "python:module:attribute"),
        ("python:no_agents:x", "there is no module 'no_agents'"),
        ("python:no.agents:x", "there is no module 'no.agents'"),
        ("python:broken_agents:oops", "does not parse"),
        ("python:needs_agents:x", "needs the module 'a_module_that_is_not_there'"),
        ("python:my_agents:by_txt", "has no 'by_txt'.*by_text"),
        ("python:my_agents:number", "is a int, not a policy"),
        ("python:my_agents:Needy", "cannot be created without model"),
        ("python:my_agents:Shapeless", "lacks reads, deterministic, act"),
        ("python:my_agents:two", "takes 2 arguments instead of one"),
        ("python:my_agents:none", "takes 0 arguments instead of one"),
        ("cloned:somewhere", "needs an encoder"),
        ("env:expert", "needs an environment"),
        ("gpt-4", "is not a policy.*env:NAME"),
    ],
)
def test_wrong_specifications_are_explained(spec, message):
    with pytest.raises(PreplayError, match=message):
        load_policy(spec)


def test_an_answer_that_is_no_text_is_refused():
    with pytest.raises(PreplayError, match="answered int 42 instead of text"):
        act(load_policy("python:my_agents:wrong_type"), AgentState("a"))


def test_errors_of_the_function_come_through():
    def fails(state_text: str) -> str:
        raise KeyError("my bug")

    with pytest.raises(KeyError, match="my bug"):
        act(FunctionPolicy(fails, "fails"), AgentState("a"))


def test_policies_of_an_environment():
    desk = get_environment("support_desk")
    assert load_policy("env:expert", desk).name == "expert"
    with pytest.raises(
        PreplayError, match=r"support_desk has no policy 'exprt'.*It has: adaptive, apprentice"
    ):
        load_policy("env:exprt", desk)
