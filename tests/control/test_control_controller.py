"""Controller, rules and gates: there is always a decision, and nothing dangerous is ever chosen."""

import asyncio
import math

import numpy as np
import pytest

from preplay.control import (
    BatchingController,
    Controller,
    ControllerConfig,
    Goals,
    PromptChooser,
    Rule,
    choose_pool_size,
    judge,
    pool_size_curve,
    prompt_action,
)
from preplay.control import PoolSizePoint as Point
from preplay.critics import ActionEncoder, DecisionState, Scores
from preplay.errors import PreplayError

STATE = DecisionState("Write f.", "Current code:\npass\n")
GOOD, BAD = "def f(x):\n    return x\n", "import os\nos.system('x')\n"


class ByLength:
    """Scores a candidate by the log of its length (the feature ``length``); counts its passes."""

    def __init__(self, change=lambda scores: scores, distance=1.0):
        self.change, self.distance, self.passes = change, distance, 0

    def score(self, pools):
        from preplay.critics import DENSE

        self.passes += 1
        scores = pools.features[:, DENSE.index("length")].astype(float)
        return Scores(self.change(scores), np.full(len(scores), np.nan))

    def state_distance(self, pools):
        return np.full(len(pools.state), self.distance)


def controller(scorer=None, **config):
    return Controller(scorer or ByLength(), ActionEncoder(), ControllerConfig(**config))


def test_the_best_candidate_is_chosen():
    decision = controller().decide(STATE, ["a", "a longer one", "mid"])
    assert (decision.outcome, decision.action, decision.index) == ("chosen", "a longer one", 1)
    assert decision.confidence == decision.best_score == pytest.approx(math.log1p(12), rel=1e-5)


def test_dangerous_candidates_are_never_chosen_however_they_score():
    decision = controller().decide(STATE, [BAD * 20, "ok"])
    assert (decision.action, decision.index) == ("ok", 1)
    assert math.isnan(decision.scores[0])
    assert "shell: os.system in line 2" in decision.reasons[0]


def test_only_dangerous_candidates_go_to_review():
    assert controller().decide(STATE, [BAD]).outcome == "review"
    assert controller(fallback="stop").decide(STATE, [BAD]).action == "stop"


def test_no_candidates():
    decision = controller().decide(STATE, [])
    assert (decision.outcome, decision.reasons) == ("review", ("no candidates",))
    assert controller(fallback="stop").decide(STATE, []).action == "stop"


@pytest.mark.parametrize("worst", [math.nan, math.inf, -math.inf])
def test_scores_that_are_no_numbers_never_win(worst):
    """All others are -5: a candidate without a score must not beat them."""
    scorer = ByLength(lambda s: np.where(s == s.max(), worst, -5.0))
    decision = controller(scorer).decide(STATE, ["the longest of all", "b", "c"])
    assert (decision.outcome, decision.index) == ("chosen", 1)
    assert "1 candidates could not be scored" in decision.reasons


def test_nothing_scored_falls_back_to_the_first_allowed():
    decision = controller(ByLength(lambda s: s * np.nan)).decide(STATE, [BAD, "safe", "other"])
    assert (decision.outcome, decision.action) == ("fallback", "safe")


def test_below_the_threshold_and_outside_the_data():
    assert controller(threshold=99.0, fallback="stop").decide(STATE, ["a"]).action == "stop"
    assert controller(threshold=99.0, abstain="review").decide(STATE, ["a"]).outcome == "review"
    far = controller(ByLength(distance=7.0), max_distance=3.0, fallback="stop").decide(STATE, ["a"])
    assert far.action == "stop"
    assert "outside the training data (7.00 > 3.00)" in far.reasons[0]


def test_rules_per_risk_class():
    rules = (Rule("dynamic_code", "review"), Rule("shell", "block"))
    assert judge("eval('1')", rules)[0] == "review"
    assert judge(BAD, rules)[0] == "block"
    assert judge("import os\nos.remove('a')", rules)[0] == "allow"
    assert controller(rules=rules).decide(STATE, ["eval('1 + 1 + 1')", "a"]).outcome == "review"
    with pytest.raises(ValueError, match="no risk class 'magic'"):
        Rule("magic", "block")


@pytest.mark.parametrize(
    ("action", "verdict"),
    [
        ("DROP TABLE users", "block"),
        ("SELECT 1; DELETE FROM t", "block"),
        ("SELECT 'drop table x; delete from y'", "allow"),
        ("SELECT update_time FROM t", "allow"),
        ('{"tool_calls":[{"arguments":{"code":"import os\\nos.system(1)"},"name":"python"}]}', "block"),
        ('{"tool_calls":[{"arguments":{"text":"please never call os.system"},"name":"say"}]}', "allow"),
    ],
)
def test_rules_look_into_queries_and_tool_arguments(action, verdict):
    assert judge(action, ControllerConfig().rules)[0] == verdict


def test_a_rewritten_action_must_pass_the_rules_too():
    base = controller(fallback="stop")
    base.rewrite = lambda state, action: action.upper()
    assert base.decide(STATE, ["abc"]).action == "ABC"
    base.rewrite = lambda state, action: BAD
    assert base.decide(STATE, ["abc"]).action == "stop"


def test_huge_and_odd_candidates():
    odd = ["x = 1\n" * 34_000, "ünï😀", "", "\x00", "(" * 2000, "\ud800"]
    decision = controller().decide(STATE, odd)
    assert decision.index == 0
    assert all(math.isfinite(s) for s in decision.scores)


def test_scores_are_remembered_by_content():
    scorer = ByLength()
    own = controller(scorer)
    for _ in range(3):
        own.decide(STATE, ["a", "b"])
    assert scorer.passes == 1
    own.decide(STATE, ["a", "c"])
    own.decide(STATE, ["a", "b"], context="other")
    assert scorer.passes == 3


def test_many_agents_share_one_pass():
    scorer = ByLength()
    batching = BatchingController(controller(scorer), max_batch=16, max_wait_s=0.02)

    async def agents():
        return await asyncio.gather(*(batching.decide(STATE, [f"{i}", "long" * (i + 1)]) for i in range(32)))

    decisions = asyncio.run(agents())
    assert [d.action for d in decisions] == ["long" * (i + 1) for i in range(32)]
    assert batching.passes == scorer.passes == 2


def test_an_error_reaches_every_waiting_agent():
    def fail(scores):
        raise PreplayError("no model")

    batching = BatchingController(controller(ByLength(fail)))

    async def agents():
        return await asyncio.gather(
            *(batching.decide(STATE, [f"{i}"]) for i in range(3)), return_exceptions=True
        )

    assert [str(e) for e in asyncio.run(agents())] == ["no model"] * 3


def test_goals_weigh_heads_by_context():
    goals = Goals(("quality", "speed"), {"quality": 1.0}, {"urgent": {"quality": 0.2, "speed": 0.8}})
    assert goals.weights("urgent") == (0.2, 0.8)
    assert goals.weights("anything else") == (1.0, 0.0)
    with pytest.raises(PreplayError, match="no reward head 'cost'"):
        Goals(("quality",), {"cost": 1.0}, {})


def test_the_prompt_is_chosen_by_the_same_critic():
    chooser = PromptChooser(
        ByLength(), ActionEncoder(), {"short": "Be brief.", "a much longer name": "Think."}
    )
    assert chooser.choose(STATE) == ("a much longer name", "Think.")
    assert judge(prompt_action("short"), ControllerConfig().rules)[0] == "allow"


def test_the_pool_size_is_chosen_on_the_measured_curve():
    """K = 4 is within .01 of the best (.93); under 6 ms only K <= 2 is affordable."""
    curve = [Point(1, 0.6, 1, 2), Point(2, 0.8, 2, 5), Point(4, 0.925, 4, 9), Point(8, 0.93, 8, 20)]
    assert choose_pool_size(curve) == 4
    assert choose_pool_size(curve, budget_ms=6) == 2
    work = [(STATE, ["a", "bb", "ccc"], [False, False, True])] * 5
    measured = pool_size_curve(controller(), work, (1, 3))
    assert [p.success for p in measured] == [0.0, 1.0]
    assert measured[0].p99_ms >= measured[0].p50_ms > 0
