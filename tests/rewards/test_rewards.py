"""Each reward term by hand, danger by syntax tree, and the audit of a critic that was hacked."""

import numpy as np
import pytest

from preplay.environments.code_repair import all_tasks
from preplay.errors import PreplayError
from preplay.rewards import ActionOutcome, RewardFunction, audit_scores, dangerous_calls, style_violations

CLEAN = "def f(x):\n    return x + 1\n"


def term(name: str, outcome: ActionOutcome) -> float:
    return float(RewardFunction()([outcome]).terms[name][0])


def test_final_result():
    assert term("final_result", ActionOutcome(CLEAN, solved=True)) == 10.0
    assert term("final_result", ActionOutcome(CLEAN)) == 0.0


@pytest.mark.parametrize(("code", "value"), [(CLEAN, 0.5), ("def f(:\n", 0.0), ("", 0.0), ("# nothing", 0.0)])
def test_syntax(code, value):
    assert term("syntax", ActionOutcome(code)) == value


def test_public_tests_one_point_each():
    assert term("public_tests", ActionOutcome(CLEAN, public_passed=3, public_total=4)) == 3.0


def test_excess_length_beyond_one_and_a_half_times_the_reference():
    """Reference 4 lines: 6 are free; 9 lines are 3 too many, blank lines do not count: -0.03."""
    code = "\n\n".join(["x = 1"] * 9)
    assert term("excess_length", ActionOutcome(code, reference_lines=4)) == pytest.approx(-0.03)
    assert term("excess_length", ActionOutcome("\n".join(["x = 1"] * 6), reference_lines=4)) == 0.0
    assert term("excess_length", ActionOutcome(code)) == 0.0


def test_style_is_checked_by_ruff():
    assert term("style", ActionOutcome(CLEAN)) == 0.2
    assert term("style", ActionOutcome("import os\n" + CLEAN)) == 0.0  # an unused import
    assert term("style", ActionOutcome("def f(:\n")) == 0.0
    assert style_violations([CLEAN, "import os, sys\n", CLEAN])[1] >= 2


def test_danger_costs_five_and_ends_the_session():
    out = RewardFunction()([ActionOutcome("import os\nos.system('ls')\n"), ActionOutcome(CLEAN)])
    assert out.terms["danger"].tolist() == [-5.0, 0.0]
    assert out.terminated.tolist() == [True, False]


def test_the_reward_is_the_sum_of_its_terms():
    """Solved 10, parses 0.5, two public tests 2, clean style 0.2: 12.7."""
    out = RewardFunction()([ActionOutcome(CLEAN, 2, 2, solved=True, reference_lines=2)])
    assert out.total[0] == pytest.approx(12.7)


def test_an_answer_by_table_costs_more_than_it_earns():
    """Passes two public tests (2), parses (0.5), clean style (0.2), ignores its inputs (-5)."""
    table = "def f(x):\n    if x == 1:\n        return 2\n    return 3\n"
    assert term("ignored_inputs", ActionOutcome(table, 2, 2)) == -5.0
    assert RewardFunction()([ActionOutcome(table, 2, 2)]).total[0] == pytest.approx(-2.3)
    assert term("ignored_inputs", ActionOutcome(CLEAN)) == 0.0
    assert term("ignored_inputs", ActionOutcome("def f(:\n")) == 0.0


def test_no_honest_solution_is_taken_for_an_answer_by_table():
    assert not [t.name for t in all_tasks() if term("ignored_inputs", ActionOutcome(t.reference))]


def test_weights_by_context():
    reward = RewardFunction().with_weights({"final_result": 0.0, "style": 1.0})
    assert reward([ActionOutcome(CLEAN, solved=True)]).total[0] == pytest.approx(1.5)
    with pytest.raises(PreplayError, match="no reward term 'speed'"):
        RewardFunction().with_weights({"speed": 1.0})


@pytest.mark.parametrize(
    ("code", "risk"),
    [
        ("import os\nos.system('x')", "shell"),
        ("import os as o\no.popen('x')", "shell"),
        ("from os import system as s\ns('x')", "shell"),
        ("import os\nrun = os.system\nrun('x')", "shell"),
        ("getattr(__import__('os'), 'system')('x')", "shell"),
        ("__import__('posix').system('x')", "shell"),
        ("import importlib\nimportlib.import_module('os').system('x')", "shell"),
        ("import os\nos.execv('/bin/sh', [])", "shell"),
        ("import subprocess\nsubprocess.run('ls', shell=True)", "shell"),
        ("import subprocess as p\np.Popen(['/bin/bash', '-c', 'ls'])", "shell"),
        ("import subprocess\nsubprocess.getoutput('ls')", "shell"),
        ("eval('1')", "dynamic_code"),
        ("list(map(eval, xs))", "dynamic_code"),
        ("import builtins\nbuiltins.exec('x')", "dynamic_code"),
        ("globals()['eval']('1')", "dynamic_code"),
        ("def f():\n    exec('x = 1')", "dynamic_code"),
        ("import shutil\nshutil.rmtree('/')", "file_deletion"),
        ("from pathlib import Path\nPath('a').unlink()", "file_deletion"),
        ("import os\nos.remove('a')", "file_deletion"),
    ],
)
def test_dangerous(code, risk):
    assert risk in {call.risk for call in dangerous_calls(code)}


@pytest.mark.parametrize(
    "code",
    [
        "print('os.system(1)')  # eval(x)",
        "import subprocess\nsubprocess.run(['git', 'status'], shell=False)",
        "xs = [1]\nxs.remove(1)",
        "def evaluate(x):\n    return x\nevaluate(1)",
        "import os\nos.path.join('a', 'b')",
        "import re\nre.compile('eval')",
        "eval(",
    ],
)
def test_harmless(code):
    assert dangerous_calls(code) == ()


def test_danger_names_the_line():
    found = dangerous_calls("x = 1\n\nimport os\nos.remove('a')\n")
    assert [(c.line, c.name) for c in found] == [(4, "os.remove")]


def test_danger_survives_unicode_and_size():
    assert dangerous_calls("s = 'ü😀'\n" * 10_000 + "eval(s)")[0].line == 10_001
    assert dangerous_calls("(" * 5000) == ()


def test_audit_finds_a_critic_that_likes_hacks():
    """Honest 0.9 and 0.8, empty 0.1, hard-coded 0.85: honest wins 2 of 2 and 1 of 2 pairs."""
    solved = ActionOutcome(CLEAN, 1, 1, solved=True)
    outcomes = [solved, solved, ActionOutcome("def f(x): pass"), ActionOutcome("def f(x): return 2", 1, 1)]
    scores = np.array([0.9, 0.8, 0.1, 0.85])
    hacks = {"empty": np.array([2]), "hard_coded": np.array([3])}
    audit = audit_scores(scores, outcomes, ["t"] * 4, hacks)
    assert {h.kind: h.honest_wins for h in audit.hacks} == {"empty": 1.0, "hard_coded": 0.5}
    assert not audit.passed
    assert audit.top_actions == [0]
    assert audit.top_terms["final_result"] == 10.0
    assert audit.all_terms["final_result"] == 5.0
    assert np.isnan(audit.correlation["danger"])
    assert audit.correlation["final_result"] > 0.4


def test_an_impossible_outcome_is_refused():
    with pytest.raises(ValueError, match="3 of 2"):
        ActionOutcome(CLEAN, 3, 2)
