"""Whole backtests on logs with a known rule, and what happens to logs that cannot answer."""

import json

import numpy as np
import pyarrow as pa
import pytest

from preplay.actions import Call, OutcomeRule, ParsedAction, use_adapter
from preplay.backtest import (
    MEAN_OF_ACTIONS,
    AskedActions,
    BacktestConfig,
    BacktestReport,
    backtest,
    estimate_actions,
    estimate_policy,
)
from preplay.errors import PreplayError

from .conftest import SKILLS, key_logs, make_turns

QUICK = BacktestConfig(folds=3, learners=("logistic",), rows=2000)


@pytest.fixture(scope="module")
def report(key_turns) -> BacktestReport:
    return backtest(key_turns, QUICK, environment_key="room")


def test_left_out_policies_are_predicted(report):
    assert report.chosen is not None
    assert report.chosen.pooled < 5
    assert report.chosen.spearman == pytest.approx(1.0)
    assert report.chosen.regret == 0
    mean = next(s for s in report.scores if s.estimator == "mean of logs")
    assert mean.pooled > 20


def test_intervals_hold_and_nobody_supported_is_refused(report):
    assert report.coverage >= 0.85
    assert report.refused == 0
    assert all(p.bounds.contains(p.logged) for p in report.policies)


def test_report_is_json_and_a_sentence(report):
    assert BacktestReport.model_validate_json(report.model_dump_json()) == report
    assert report.sentence().startswith("On your logs, preplay predicted 5 left-out policies with ")
    assert any("json" in note for note in report.notes)
    assert any("sessions stop at success" in note for note in report.notes)


def test_same_seed_same_report(key_turns, report):
    again = backtest(key_turns, QUICK, environment_key="room")
    assert [p.predicted for p in again.policies] == [p.predicted for p in report.policies]


def test_rewards_of_the_target_are_never_used(key_turns):
    """Flipping them changes nothing about its prediction, interval or choice."""
    honest = estimate_policy(key_turns, "p70", QUICK, environment_key="room")
    mine = np.array(key_turns["policy"].to_pylist()) == "p70"
    flipped = pa.array(np.where(mine, 1 - key_turns["reward"].to_numpy(), key_turns["reward"].to_numpy()))
    turns = key_turns.set_column(key_turns.schema.get_field_index("reward"), "reward", flipped)
    assert estimate_policy(turns, "p70", QUICK, environment_key="room") == honest
    assert honest.logged is None
    assert honest.predicted == pytest.approx(0.91, abs=0.06)  # 1 - (1 - .7 * .8)³


def test_predicting_one_policy_equals_its_row_of_the_backtest(key_turns, report):
    one = estimate_policy(key_turns, "p30", QUICK, environment_key="room")
    row = next(p for p in report.policies if p.policy == "p30")
    assert one.predicted == pytest.approx(row.predicted, abs=1e-9)
    assert one.bounds == row.bounds


def test_a_policy_that_never_ran_is_predicted_from_its_actions(key_turns):
    """It lists the keys, then names the right one: .8 at the first try, .96 at the second."""
    turn, sessions = key_turns["turn"].to_numpy(), np.cumsum(key_turns["turn"].to_numpy() == 0) - 1
    row = np.flatnonzero(sessions % 3 == 0)
    room = [
        json.loads(e)["room"].split()[1] for e in key_turns["extras"].take(row[turn[row] == 0]).to_pylist()
    ]
    key = dict(zip(np.unique(sessions[row]).tolist(), (f"k{r}x{int(r) * 7 % 10}" for r in room), strict=True))
    call = '{{"name": "unlock", "arguments": {{"key": "{}"}}}}'
    action = [
        call.format(key[s] if t else "list") for s, t in zip(sessions[row].tolist(), turn[row], strict=True)
    ]
    asked = AskedActions(row, action)
    found = estimate_actions(key_turns, "new", asked, QUICK, environment_key="room")
    assert found.predicted == pytest.approx(0.992, abs=0.1)
    assert found.bounds.contains(0.992)
    assert found.candidate == MEAN_OF_ACTIONS
    discounted = QUICK.model_copy(update={"gamma": 0.5})
    worth = estimate_actions(key_turns, "new", asked, discounted, environment_key="room").predicted
    assert worth == pytest.approx(0.5 * 0.8 + 0.25 * 0.16 + 0.125 * 0.032, abs=0.06)
    with pytest.raises(PreplayError, match="'p10' is a logged policy"):
        estimate_actions(key_turns, "p10", asked, QUICK)
    with pytest.raises(PreplayError, match="not asked for any first action"):
        estimate_actions(key_turns, "new", AskedActions(row[turn[row] > 0][:1], ["x"]), QUICK)


def test_groups_are_left_out_together(key_turns):
    found = backtest(key_turns, QUICK, environment_key="room", groups={"p70": "big", "p90": "big"})
    assert [p.policy for p in found.policies] == sorted(SKILLS)
    with pytest.raises(PreplayError, match="no policy 'p80'"):
        backtest(key_turns, QUICK, groups={"p80": "x"})


def test_declared_horizon(key_turns):
    """One turn lists keys, the second is the first try: .7 * .8 of p70's sessions are solved in two turns."""
    two = estimate_policy(key_turns, "p70", QUICK.model_copy(update={"horizon": 2}), environment_key="room")
    assert two.predicted == pytest.approx(0.56, abs=0.09)
    long = estimate_policy(key_turns, "p70", QUICK.model_copy(update={"horizon": 9}), environment_key="room")
    assert long.verdict == "not identified"
    assert "turn budget is 9, but the logs show at most 4" in long.reason


def test_an_undeclared_shorter_budget_is_refused(key_turns):
    mine = np.array(key_turns["policy"].to_pylist()) == "p70"
    short = key_turns.filter(pa.array(~mine | (key_turns["turn"].to_numpy() < 2)))
    found = estimate_policy(short, "p70", QUICK, environment_key="room")
    assert found.verdict == "not identified"
    assert found.reason == "Its longest session has 2 turns, the logs' 4: declare its turn budget (horizon)."


def test_labelled_sessions_narrow_the_interval(key_turns):
    without = estimate_policy(key_turns, "p50", QUICK, environment_key="room")
    with_some = estimate_policy(key_turns, "p50", QUICK, environment_key="room", labelled=(40, 50))
    assert with_some.bounds.error < without.bounds.error
    with pytest.raises(PreplayError, match="60 of 50"):
        estimate_policy(key_turns, "p50", QUICK, labelled=(60, 50))


def test_another_harness_is_refused(key_turns):
    """A policy under a prompt that changes what it does first: nobody in the logs does that."""
    other = key_logs(
        {"new": 0.6}, '{{"name": "pick_lock", "arguments": {{"with": "{key}", "force": 3}}}}', seed=1
    )
    renamed = pa.array([f"n{s}" for s in other["session_id"].to_pylist()])
    other = other.set_column(0, other.schema.field(0), renamed)
    found = estimate_policy(pa.concat_tables([key_turns, other]), "new", QUICK, environment_key="room")
    assert found.verdict == "not identified"
    assert "done by no logged policy" in found.reason
    assert found.support.missing[0].what.startswith("pick_lock")
    assert "the logs cannot tell" in found.sentence()


def test_one_policy_only():
    report = backtest(
        key_logs({"only": 0.5}, '{{"name": "unlock", "arguments": {{"key": "{key}"}}}}', rooms=4), QUICK
    )
    assert report.chosen is None
    assert "one policy (or one group) only (only)" in report.sentence()


def test_two_policies_that_never_overlap():
    steps = {"a": ("SELECT x FROM t", "[(1,)]"), "b": ("ls src/", "a.py")}
    sessions = [
        {"policy": p, "task": f"t{k}", "room": f"r{k}", "steps": [(*steps[p], int(k % 3 == 0))]}
        for p in "ab"
        for k in range(30)
    ]
    report = backtest(make_turns(sessions), QUICK, environment_key="room")
    assert report.refused == 2
    assert [p.support.unsupported for p in report.policies] == [1.0, 1.0]


def test_logs_without_success():
    sessions = [{"policy": "a", "task": "t", "room": "r", "steps": [("x", "y", 0)]}]
    with pytest.raises(PreplayError, match="no session of these logs reaches a reward of 1"):
        backtest(make_turns(sessions), QUICK)


def test_plain_text_logs_still_run():
    sessions = [
        {
            "policy": p,
            "task": f"t{k}",
            "room": f"r{k % 5}",
            "steps": [("I can help.", "Thanks!", int((k + i) % 3 == 0))],
        }
        for i, p in enumerate("abcd")
        for k in range(40)
    ]
    report = backtest(make_turns(sessions), QUICK, environment_key="room")
    assert report.families.main == "text"
    assert report.chosen is not None
    assert report.chosen.pooled < 5


class Door:
    """A new tool family: ``@door key=K``."""

    name = "door"
    description = "door commands"
    outcome_rules = (OutcomeRule(r"bad key", "error: unknown name"), OutcomeRule(r"\A\[", "data"))

    def recognise(self, action: str) -> float:
        return 1.0 if action.startswith("@door") else 0.0

    def parse(self, action: str) -> ParsedAction:
        _, _, key = action.partition("key=")
        if not key:
            return ParsedAction((), action, "broken")
        return ParsedAction((Call("door", (), (key,)),), action, "parsed")


def test_a_new_tool_family_improves_the_backtest():
    turns = key_logs(SKILLS, "@door key={key}")
    actions_only = QUICK.model_copy(update={"learners": ("logistic",)})
    before = backtest(turns, actions_only, environment_key="room", second_opinions=False)
    with use_adapter(Door):
        after = backtest(turns, actions_only, environment_key="room", second_opinions=False)

    def error(report: BacktestReport, name: str) -> float:
        return next(s.pooled for s in report.scores if s.estimator == name)

    assert before.families.main == "text"
    assert after.families.main == "door"
    assert error(after, "grounding/logistic") < error(before, "grounding/logistic") / 2
    assert after.chosen is not None
    assert before.chosen is not None
    assert after.chosen.pooled <= before.chosen.pooled


def test_no_environment_is_said(key_turns):
    bare = key_turns.set_column(
        key_turns.schema.get_field_index("extras"),
        "extras",
        pa.array([json.dumps({})] * key_turns.num_rows),
    )
    tasks = pa.array(
        [f"{p}{t}" for p, t in zip(bare["policy"].to_pylist(), bare["task"].to_pylist(), strict=True)]
    )
    bare = bare.set_column(bare.schema.get_field_index("task"), "task", tasks)
    report = backtest(bare, QUICK, second_opinions=False)
    assert any("name no environment" in note for note in report.notes)
