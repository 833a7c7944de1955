"""Structure, knowledge and grounding on hand-made logs whose every value is counted by hand."""

import time

import numpy as np
import pytest

from preplay.actions import (
    OutcomeClassifier,
    build_knowledge,
    find_harness,
    ground,
    load_knowledge,
    mention,
    save_knowledge,
    structure,
    terms,
)
from preplay.errors import PreplayError

from .conftest import make_turns


def test_terms_join_numbers_to_the_word_before():
    assert terms("Desk 2 has user_id=Ana_7") == ["desk", "desk 2", "2", "has", "user_id", "ana_7"]
    assert mention("cabinet 12") == ["cabinet 12"]


def test_structure_of_the_shop(shop):
    made = structure(shop)
    assert made.families.main == "sql"
    assert made.environments == ["shop", "x"]
    assert [made.outcomes[o] for o in made.outcome[:5]] == [
        "data", "data", "error: unknown name", "error: unknown name", "empty",
    ]  # fmt: skip
    assert made.error.tolist() == [False, False, True, True, False, False, False]


def test_grounding_of_the_shop(shop):
    g = ground(structure(shop))
    rows = {"show": 0, "pets": 1, "animals": 2, "again": 3, "joe": 4}
    # a saw `pets` in SHOW TABLES; the word is in the question too; b vouches for it as well (its last query worked)
    assert [g[n][rows["pets"]] for n in ("names", "names_task", "names_seen", "names_base")] == [1, 1, 1, 1]
    # nobody knows `animals`; before b is told, nothing refuses it but the pool of others (a never tried)
    assert [g[n][rows["animals"]] for n in ("names_unknown", "names_refused_here", "names_refused")] == [
        1,
        0,
        0,
    ]
    assert [g[n][rows["again"]] for n in ("names_unknown", "names_refused_here", "names_refused")] == [
        1,
        1,
        1,
    ]
    assert g["exact_repeat"].tolist() == [0, 0, 0, 1, 0, 0, 0]
    assert g["near_repeat"].tolist() == [0, 0, 0, 1, 0, 0, 0]
    # `pets` and `owner` are known from a's session; Joe and Smith from nowhere
    assert [g[n][rows["joe"]] for n in ("names", "names_base", "values", "values_unknown")] == [2, 1, 2, 1]


def test_a_policy_never_vouches_for_itself(shop):
    made = structure(shop)
    without_a = ground(made, without=("a",))
    assert without_a["names_base"][4] == 0  # b's `pets`, `owner`: known through a only
    assert ground(made)["names_base"][4] == 1
    assert without_a["names_seen"][1] == 1  # a's own session still counts as seen


def test_knowledge_is_readable_and_survives_the_disk(shop, tmp_path):
    base = build_knowledge(structure(shop))
    facts = base.facts("shop")
    assert {"pets", "owner"} <= set(facts["shown"])
    assert facts["refused"] == ["animals"]
    assert base.facts("shop", without=("b",))["refused"] == []
    save_knowledge(base, tmp_path / "base")
    again = load_knowledge(tmp_path / "base")
    assert again.facts("shop") == facts
    assert again.facts("shop", without=("a",)) == base.facts("shop", without=("a",))
    with pytest.raises(PreplayError, match="nothing is known of the environment 'zoo'"):
        base.facts("zoo")


def test_left_out_policies_are_not_pooled(shop):
    base = build_knowledge(structure(shop), without=("a",))
    assert "cars" in base.facts("x")["shown"]  # b saw it too
    assert "show" not in base.facts("shop")["shown"]
    assert base.facts("shop")["shown"] == ["joe", "owner", "pets", "smith"]  # named in b's query that worked


def test_without_environment_the_knowledge_is_empty():
    turns = make_turns(
        [{"policy": p, "task": f"task {p}", "steps": [("SELECT a FROM t", "[(1,)]", 1)]} for p in "ab"]
    )
    made = structure(turns)
    assert made.environments == []
    assert ground(made)["names_base"].tolist() == [0, 0]
    with pytest.raises(PreplayError, match="no session has the field 'db'"):
        structure(turns, environment_key="db")


def test_equal_tasks_are_an_environment_when_nothing_names_one():
    steps = [("SELECT a FROM t", "[(1,)]", 1)]
    turns = make_turns([{"policy": p, "task": t, "steps": steps} for p in "ab" for t in ("one", "two")])
    assert structure(turns).environments == ["one", "two"]


def test_step_counters_are_found_and_stripped():
    texts = [f"You see a lamp.\n{4 - turn} moves to go" for _ in range(30) for turn in range(4)]
    harness = find_harness(texts, np.tile(np.arange(4), 30))
    assert harness.templates == {"# moves to go"}
    assert harness.strip(texts[0]) == "You see a lamp."
    left = "You have 3 steps left and 2 chances to propose solution left."
    assert harness.strip(left) == ""


def test_numbers_that_do_not_count_turns_stay():
    texts = [f"{seed * 7 % 5} rows" for seed in range(120)]
    assert find_harness(texts, np.tile(np.arange(4), 30)).templates == frozenset()


def test_outcomes_by_rule_and_learned():
    known = [f"Error: no such file {i}" for i in range(30)] + [f"[('row', {i})]" for i in range(30)]
    classifier = OutcomeClassifier()
    found = classifier.classify([*known, "That file gives such an error: no file error", "Nice weather"])
    assert {c.outcome for c in found[:30]} == {"error: unknown name"}
    assert {c.outcome for c in found[30:60]} == {"data"}
    assert found[60].outcome == "error: unknown name"
    assert found[61].outcome == "other"
    assert classifier.learned_share == pytest.approx(1 / 62)


def test_mixed_tools_in_one_session():
    steps = [("SELECT a FROM t", "[(1,)]", 0), ("ls src/", "a.py", 0), ("What else?", "Nothing.", 1)]
    made = structure(make_turns([{"policy": "a", "task": "x", "steps": steps}]))
    assert [made.tools[t] for t in made.tool] == ["select", "ls", "text"]


def test_100k_turns_are_grounded_in_10_seconds():
    steps = [
        (f"SELECT c{i % 7} FROM t{i % 50} WHERE v = 'x{i % 90}'", f"[('x{i % 80}', 't{i % 40}')]", 0)
        for i in range(10)
    ]
    turns = make_turns(
        [
            {
                "policy": f"p{i % 5}",
                "task": f"q {i % 200}",
                "steps": steps,
                "extras": {"database": str(i % 20)},
            }
            for i in range(500)
        ]
    )
    import pyarrow as pa

    many = pa.concat_tables([turns] * 20)
    made = structure(many)
    began = time.process_time()
    assert ground(made).features.shape == (100_000, 15)
    assert time.process_time() - began < 10
