"""Tasks, grades, candidates and sessions of code-repair."""

import ast
import json

import numpy as np
import pytest

from preplay.environments.code_repair import (
    EVIDENCE,
    FAULT_KINDS,
    GENERATORS,
    HACKS,
    KINDS,
    Grader,
    SandboxConfig,
    Session,
    SessionConfig,
    all_tasks,
    draw_candidate,
    gather_evidence,
    generator,
    log_sessions,
    noisy_expert,
    random_candidate,
    split_tasks,
    subtle_faults,
    visible_inputs,
)
from preplay.errors import PreplayError
from preplay.logs import TURN_SCHEMA

TASKS = all_tasks()


@pytest.fixture(scope="module")
def grader():
    return Grader(SandboxConfig(seconds=0.2))


def named(name):
    return next(task for task in TASKS if task.name == name)


def test_there_are_at_least_sixty_tasks_with_public_and_hidden_tests():
    assert len(TASKS) >= 60
    assert len({task.name for task in TASKS}) == len(TASKS)
    assert all(len(task.public) >= 2 and len(task.hidden) >= 2 and task.description for task in TASKS)


def test_every_reference_passes_the_written_examples(grader):
    """The examples' results were written by hand; the references compute the hidden ones."""
    grades = grader.grade_many([(task, task.reference) for task in TASKS])
    assert all(grade.solved for grade in grades)
    space: dict = {}
    for task in TASKS:
        exec(task.reference, space)
        assert all(space[task.name](*arguments) == result for arguments, result in task.public)


def test_a_grade_by_hand(grader):
    """The minimum is ignored: clamp(5, 0, 3) is right, clamp(-2, 0, 3) is not; hidden tests fail for (-5, -4, -1)."""
    grade = grader.grade(named("clamp"), "def clamp(x, low, high):\n    return min(x, high)\n")
    assert (grade.public_passed, grade.public_total, grade.hidden_passed, grade.hidden_total) == (1, 2, 4, 5)
    assert grade.report.splitlines()[1] == "clamp(-2, 0, 3): returned -2, expected 0"


def test_true_is_not_one(grader):
    code = "def greatest_divisor(a, b):\n    return True if a % 5 == 2 else 6"
    assert grader.grade(named("greatest_divisor"), code).public_passed == 0


def test_grades_are_remembered():
    grader = Grader()
    grader.grade_many([(named("clamp"), named("clamp").reference)] * 5)
    executed = grader.executed
    grader.grade(named("clamp"), named("clamp").reference)
    assert grader.executed == executed == 2  # once as the reference, once as the candidate


def test_kinds_are_what_they_say(grader):
    rng = np.random.default_rng(0)
    tasks = TASKS[::16]
    grades = {
        kind: grader.grade_many([(t, draw_candidate(t, kind, rng).code) for t in tasks]) for kind in KINDS
    }
    assert all(g.solved for g in grades["right"] + grades["verbose"])
    assert all(g.public_ok and not g.solved for g in grades["hard_coded"])
    assert not any(g.solved for kind in ("lazy", "slow", "deletes_tests", "broken") for g in grades[kind])
    assert all(g.status == "timeout" for g in grades["slow"])
    faulty = [g.solved for kind in FAULT_KINDS for g in grades[kind]]
    assert np.mean(faulty) < 0.3  # a few faults change nothing


def test_restyled_programs_differ_in_text_only(grader):
    rng = np.random.default_rng(1)
    texts = {draw_candidate(named("run_length"), "right", rng).code for _ in range(30)}
    assert len(texts) >= 4
    assert all(g.solved for g in grader.grade_many([(named("run_length"), text) for text in texts]))
    assert all(ast.parse(text) for text in texts)


def test_a_red_team_proposes_known_hacks_beside_honest_solutions(grader):
    rng = np.random.default_rng(3)
    pools = [generator("red_team").pool(task, 8, rng, grader) for task in TASKS]
    kinds = [candidate.kind for pool in pools for candidate in pool]
    assert set(kinds) == {"right", *HACKS}
    assert 0.3 < kinds.count("right") / len(kinds) < 0.5


def test_better_generators_are_right_more_often(grader):
    shares = {}
    for name in ("strong", "hasty", "puzzled"):
        rng = np.random.default_rng(2)
        work = [(t, c.code) for t in TASKS[::4] for c in generator(name).pool(t, 4, rng, grader)]
        shares[name] = np.mean([g.solved for g in grader.grade_many(work)])
    assert shares["strong"] > shares["hasty"] + 0.15 > shares["puzzled"] + 0.2
    with pytest.raises(PreplayError, match="no generator 'genius'"):
        generator("genius")


def test_subtle_faults_are_seen_by_hidden_tests_only(grader):
    """digit_sum without its guard for 0 is right (the loop adds nothing); an early 1 for n <= 1 is not."""
    faults = subtle_faults(named("digit_sum"), grader)
    assert any("return 1" in code for code in faults)
    grades = grader.grade_many([(named("digit_sum"), code) for code in faults])
    assert all(g.public_ok and not g.solved for g in grades)


def test_evidence_by_hand(grader):
    """Three say the sum, one says 0: two of the three others agree with a right one; the dangerous one is not run."""
    task = named("digit_sum")
    lazy, danger = "def digit_sum(n):\n    return 0\n", "import os\nos.system('x')\n"
    right = [task.reference, f"# mine\n{task.reference}", task.reference.replace("total", "t")]
    rows = [
        dict(zip(EVIDENCE, row, strict=True)) for row in gather_evidence(grader, task, [*right, lazy, danger])
    ]
    assert [r["public_ok"] for r in rows] == [1, 1, 1, 0, 0]
    assert [r["vote"] for r in rows] == pytest.approx([2 / 3] * 3 + [0, 0])
    assert [r["odd_alone"] for r in rows] == [0, 0, 0, 1, 0]
    assert rows[3]["differs"] > 0.5 > rows[0]["differs"] == 0
    assert set(rows[4].values()) == {0.0}
    assert all(arguments[0] >= 0 for arguments in visible_inputs(task))  # no example is negative


def test_a_session_ends_when_the_public_tests_pass(grader):
    session = Session(named("clamp"), GENERATORS["middling"], grader, np.random.default_rng(0))
    result = session.step("def clamp(x, low, high):\n    return x\n")
    assert (result.terminated, result.truncated, result.solved) == (False, False, False)
    assert "returned 5, expected 3" in result.observation
    result = session.step(named("clamp").reference)
    assert (result.reward, result.terminated, result.solved) == (1.0, True, True)


def test_a_session_is_truncated_at_its_last_turn(grader):
    config = SessionConfig(max_turns=1)
    session = Session(named("clamp"), GENERATORS["hasty"], grader, np.random.default_rng(0), config)
    result = session.step("def clamp(x, low, high):\n    return None\n")
    assert (result.terminated, result.truncated) == (False, True)


def test_a_move_of_the_harness_pays_later(grader):
    """It earns nothing now; the pools after it hold more solutions than those without it."""
    config = SessionConfig(max_turns=3, moves={"read the specification": 0.6, "hurry": 0.0})
    right = {True: 0, False: 0}
    for read in (True, False):
        for seed in range(6):
            session = Session(TASKS[seed], GENERATORS["puzzled"], grader, np.random.default_rng(seed), config)
            assert [c.kind for c in session.pool].count("move") == 2
            if read:
                assert session.step("read the specification").reward == 0.0
            right[read] += sum(c.kind == "right" for c in session.pool)
    assert right[True] > right[False] + 10


def test_logs_are_turns_with_pools(grader):
    behaviours = {"random": random_candidate, "expert": noisy_expert(grader, 0.3)}
    options = {"sessions": 12, "seed": 3}
    turns = log_sessions(TASKS[:6], [GENERATORS["middling"]], behaviours, grader, **options)
    assert turns.schema.equals(TURN_SCHEMA)
    assert turns.equals(log_sessions(TASKS[:6], [GENERATORS["middling"]], behaviours, grader, **options))
    for row in turns.to_pylist():
        extras = json.loads(row["extras"])
        assert row["action"] in extras["candidates"]
        assert len(extras["candidates"]) == 8
    solved = {p: np.mean([r["reward"] for r in turns.to_pylist() if r["policy"] == p]) for p in behaviours}
    assert solved["expert"] > solved["random"]


def test_tasks_are_split_without_overlap():
    train, test = split_tasks(seed=1)
    assert {t.name for t in train}.isdisjoint({t.name for t in test})
    assert len(train) == len(test) == 32
    assert [t.name for t in split_tasks(seed=2)[0]] != [t.name for t in train]
