"""Structure of actions, pools as arrays, decisions from turns."""

import json

import numpy as np
import pyarrow as pa
import pytest
from critic_problems import tabular

from preplay.critics import (
    DENSE,
    ActionEncoder,
    ChunkConfig,
    DecisionState,
    action_correlation,
    decision_texts,
    decisions_from_turns,
    pool_features,
    split_groups,
    split_text,
    summarize,
)
from preplay.critics._evaluate import returns_to_go
from preplay.errors import PreplayError
from preplay.logs import TURN_SCHEMA

CODE = (
    "import os\n\ndef f(x):\n    for i in range(x):\n        print(os.path.join('a', str(i)))\n    return x\n"
)


def feature(name: str, pool: list[str], state: str = "") -> list[float]:
    return pool_features(pool, state, 8)[:, DENSE.index(name)].tolist()


def test_python_is_read_by_its_syntax_tree():
    summary = summarize(CODE)
    assert (summary.kind, summary.parses, summary.functions) == ("python", True, ("f",))
    assert set(summary.calls) == {"range", "print", "os.path.join", "str"}
    assert (summary.steps, summary.lines, summary.depth, summary.loops) == (5, 5, 3, 1)
    assert summary.literals == ("'a'",)


@pytest.mark.parametrize(
    "code",
    [
        "def f(x):\n    pass\n",
        "def f(x):\n    raise NotImplementedError\n",
        "async def f(*xs, key=None):\n    return []\n",
        "def f(a, b):\n    if (a, b) == (1, -2):\n        return 3\n    return 0\n",
        "def f(n):\n    return True if n in (2, 3, 5) else 4 == n\n",
        "def f(n):\n    return {1: 2, 3: 4}[n]\n",
        "SEEN = {'a': 1}\n\ndef f(text):\n    return SEEN.get(text, 0)\n",
        "def f(n):\n    match n:\n        case 1 | 2:\n            return 3\n        case _:\n            return 0\n",
        "def f(a, b):\n    match (a, b):\n        case (1, None):\n            return 3\n",
        "import os\n\ndef f(x):\n    return None\nos.remove('test_f.py')\n",
    ],
)
def test_code_that_only_holds_its_inputs_against_constants_ignores_them(code):
    assert summarize(code).ignores_inputs


@pytest.mark.parametrize(
    "code",
    [
        "def f(x):\n    return x\n",
        "def f(lo, n, hi):\n    return lo < n < hi\n",
        "def f(lo, n):\n    return lo < n and n < 9\n",
        "def f(year):\n    return year % 4 == 0\n",
        "def f(points):\n    return 'A' if points >= 90 else 'F'\n",
        "def f(text):\n    return text.strip() in ('a', 'b')\n",
        "def f(n, table):\n    return table[n]\n",
        "def f(n):\n    match n:\n        case [first, *_]:\n            return first\n",
        "def f(n):\n    return f(n - 1) if n > 0 else 0\n",
        "def f():\n    return 1\n",
        "def helper(x):\n    return 0\n\ndef f(x):\n    return x + helper(x)\n",
        "x = 1\n",
        "def f(x:\n    return 1\n",
        "SELECT 1",
    ],
)
def test_code_with_an_answer_of_its_own_does_not(code):
    assert not summarize(code).ignores_inputs


def test_what_ignores_its_inputs_is_a_feature_of_code_inside_tool_calls_too():
    action = json.dumps(
        {"tool_calls": [{"arguments": {"code": "def f(x):\n    return 1\n"}, "name": "write"}]},
        separators=(",", ":"),
    )
    assert feature("ignores_inputs", [action, "def f(x):\n    return x\n", "hello"]) == [1, 0, 0]


def test_the_normal_form_ignores_names_comments_and_docstrings():
    a = summarize("def f(x):\n    total = x + 1\n    return total\n")
    b = summarize('# hi\ndef f(x):\n    """Doc."""\n    res = x + 1\n    return res\n')
    c = summarize("def f(x):\n    total = x - 1\n    return total\n")
    assert a.normal_form == b.normal_form != c.normal_form


def test_tool_calls_are_read_by_their_json():
    summary = summarize(
        'Let me look.\n{"tool_calls":[{"arguments":{"path":{"name":"a.py"},"depth":2},"name":"read"}]}'
    )
    assert (summary.kind, summary.tool, summary.calls) == ("tool", "read", ("read",))
    assert {"tool:read", "argument:path.name", "argument:depth", "word:look"} <= set(summary.tokens)


def test_code_inside_a_tool_call_is_read_too():
    action = json.dumps(
        {"tool_calls": [{"arguments": {"code": CODE}, "name": "write"}]}, separators=(",", ":")
    )
    assert summarize(action).functions == ("f",)


def test_sql_is_read_by_its_words():
    summary = summarize("SELECT count(*) FROM t WHERE a = 'x y' AND b IN (SELECT b FROM u)")
    assert (summary.kind, summary.tool, summary.depth, summary.literals) == ("sql", "select", 1, ("x y",))
    assert not summarize("SELECT (a FROM t").parses


@pytest.mark.parametrize(
    "action", ["", " ", "def f(:", "ünï😀", "(" * 3000, "x = " + "[" * 500, "\x00def f(): pass", "{}"]
)
def test_anything_can_be_summarized(action):
    assert np.isfinite(pool_features([action, "other"], "state", 16)).all()


def test_a_200_kb_action_counts_to_its_last_line():
    """The dangerous last line of a long action is seen: its call is among the tokens, its part among the parts."""
    long = "x = 1\n" * 34_000 + "import os\nos.system('x')\n"
    assert len(long) > 200_000
    assert "os.system" in summarize(long).calls
    parts = split_text(long, 600)
    assert "".join(parts) == long
    assert max(map(len, parts)) <= 600


def test_agreement_is_the_share_of_the_others_that_say_the_same():
    pool = [
        "def f(x):\n    y = x\n    return y\n",
        "def f(x):\n    z = x\n    return z\n",
        "def f(x):\n    return 1\n",
    ]
    assert feature("agreement", pool) == pytest.approx([0.5, 0.5, 0.0])
    assert feature("agreement_rank", pool) == pytest.approx([0.0, 0.0, 2 / 3])
    assert feature("agreement", ["alone"]) == [0.0]


def test_a_repetition_of_the_current_code_is_seen():
    code = "def f(x):\n    if x:\n        y = x\n    return y\n"
    state = f"Write f.\nCurrent code:\n{code}\nTests:\nf(1): passed"
    assert feature("same_as_state", [code.replace("y", "z"), "def f(x):\n    return 2\n"], state) == [
        1.0,
        0.0,
    ]


def turn(session: str, number: int, action: str, reward: float, last: bool, extras: dict) -> dict:
    own = {
        "session_id": session,
        "turn": number,
        "policy": "p",
        "task": f"task {session[0]}",
        "observation": f"o{number}",
    }
    return own | {
        "action": action, "reward": reward, "next_observation": "", "terminated": last, "truncated": False,
        "extras": json.dumps(extras), "source": "s:1", "record_hash": "h",
    }  # fmt: skip


def turns_of(rows: list[dict]) -> pa.Table:
    return pa.Table.from_pylist(rows, schema=TURN_SCHEMA)


def test_decisions_from_turns():
    """Sessions are sorted; the pool is the logged one, and the executed action is in it even if rewritten."""
    rows = [
        turn("b1", 1, "b", 1.0, True, {}),
        turn("b1", 0, "a", 0.0, False, {"candidates": ["x", "a"], "evidence": [[1.0], [2.0]]}),
        turn("a1", 0, "rewritten", 0.5, True, {"candidates": ["p", "q"], "task_name": "T", "solved": True}),
    ]
    data = decisions_from_turns(turns_of(rows), ActionEncoder(evidence=("grounded",), horizon=4))
    assert data.group.tolist() == ["T", "task b", "task b"]
    assert data.pools.offsets.tolist() == [0, 3, 5, 6]
    assert data.chosen.tolist() == [2, 4, 5]
    assert data.following.tolist() == [-1, 2, -1]
    assert data.reward[:, 0].tolist() == [0.5, 0.0, 1.0]
    assert data.success.tolist() == [True, False, True]
    assert data.pools.state[:, 0].tolist() == [0.0, 0.0, 0.25]
    assert data.pools.features[3:5, -1].tolist() == [1.0, 2.0]
    assert data.pools.features[:3, -1].tolist() == [0.0] * 3


def test_selecting_and_joining_keep_rows_together():
    rows = [
        turn(s, t, f"{s}{t}", t, t == 1, {"candidates": ["x", f"{s}{t}"]})
        for s in ("a1", "b1", "c1")
        for t in (0, 1)
    ]
    data = decisions_from_turns(turns_of(rows), ActionEncoder())
    part = data.select(data.group == "task b")
    assert part.following.tolist() == [1, -1]
    assert part.chosen.tolist() == [1, 3]
    np.testing.assert_array_equal(part.pools.features, data.pools.features[4:8])
    both = part.concatenate(data)
    assert len(both) == 8
    assert both.following.tolist() == [1, -1, 3, -1, 5, -1, 7, -1]
    assert both.chosen[2:].tolist() == (data.chosen + 4).tolist()
    assert set(both.session[:2]).isdisjoint(both.session[2:])
    with pytest.raises(ValueError, match="whole sessions"):
        data.select(np.arange(len(data)) % 2 == 0)


def test_splits_are_by_task():
    rows = [turn(f"{s}{i}", 0, "a", 0.0, True, {}) for s in "abcdef" for i in range(3)]
    data = decisions_from_turns(turns_of(rows), ActionEncoder())
    train, held = split_groups(data, 0.33, np.random.default_rng(0))
    assert set(train.group).isdisjoint(held.group)
    assert len(set(held.group)) == 2


def test_a_bot_with_one_task_is_split_by_session():
    rows = [turn(f"a{i}", t, "x", 0.0, t == 1, {}) for i in range(4) for t in (0, 1)]
    data = decisions_from_turns(turns_of(rows), ActionEncoder())
    assert data.group.tolist() == ["a0", "a0", "a1", "a1", "a2", "a2", "a3", "a3"]
    named = [
        turn(f"a{i}", 0, "x", 0.0, True, {"task_name": "T"}) for i in range(2)
    ]  # a name that was given stays
    assert decisions_from_turns(turns_of(named), ActionEncoder()).group.tolist() == ["T", "T"]


def test_returns_to_go_by_hand():
    rows = [turn("a", t, "x", reward, t == 2, {}) for t, reward in enumerate((1.0, 2.0, 4.0))]
    data = decisions_from_turns(turns_of([*rows, turn("b", 0, "x", 8.0, True, {})]), ActionEncoder())
    assert returns_to_go(data, 0.5).tolist() == [1 + 0.5 * (2 + 0.5 * 4), 2 + 0.5 * 4, 4.0, 8.0]


def test_knowing_good_states_is_not_knowing_good_actions():
    """Returns are 2 s + a: a score of the state alone correlates with them, but not beyond the state."""
    rng = np.random.default_rng(0)
    states, actions = rng.integers(4, size=600), rng.integers(2, size=600)
    data = tabular([(s, a, 0.0, -1, True) for s, a in zip(states, actions, strict=True)], 4, 2)
    noise = rng.normal(size=(2, 600))
    followed = 2.0 * states + actions + 0.1 * noise[0]
    of_state, of_action = 2.0 * states + 0.1 * noise[1], actions - 2.0 * states + 0.1 * noise[1]
    assert np.corrcoef(of_state, followed)[0, 1] > 0.9
    assert abs(action_correlation(of_state, followed, data)) < 0.1  # 3 standard errors are 0.12
    assert np.corrcoef(of_action, followed)[0, 1] < -0.8
    assert action_correlation(of_action, followed, data) > 0.7
    assert np.isnan(action_correlation(np.zeros(600), followed, data))


class Letters:
    """A sentence encoder whose vector counts the letters a and b."""

    def encode(self, texts):
        return np.array([[t.count("a"), t.count("b")] for t in texts], np.float32).reshape(-1, 2)


def test_a_state_is_the_sum_of_its_task_and_its_observation():
    """The task is embedded apart from the observation: one that never changes shifts all states alike."""
    encoder = ActionEncoder(encoder=Letters())  # type: ignore[arg-type]
    pools = encoder.encode([DecisionState("aa", "b"), DecisionState("aa", "bbb")], [["x"], ["y"]])
    assert pools.state_embedding.tolist() == [[2.0, 1.0], [2.0, 3.0]]


def test_the_texts_that_are_embedded_are_known_beforehand():
    """Parts of long actions, tasks and observations, each once: what runs on a cluster before the arrays are made."""
    long = "".join(f"a{i:03}\n" for i in range(200))
    rows = [turn("a1", 0, "x", 0.0, False, {"candidates": ["x", long]}), turn("a1", 1, "x", 1.0, True, {})]
    encoder = ActionEncoder(encoder=Letters())  # type: ignore[arg-type]
    asked: list[str] = []
    encoder.encoder.encode = lambda texts: (asked.extend(texts), np.zeros((len(texts), 2), np.float32))[1]  # type: ignore[union-attr]
    decisions_from_turns(turns_of(rows), encoder)
    known = decision_texts(turns_of(rows), encoder)
    assert len(known) == len(set(known)) == 6  # x, two parts of the long one, the task, two observations
    assert set(known) == set(asked)


def test_banks_of_different_width_are_joined():
    encoder = ActionEncoder(encoder=Letters())  # type: ignore[arg-type]
    short = encoder.encode([DecisionState("t", "o")], [["a"]])
    long = encoder.encode([DecisionState("t", "o")], [["b" * 1500, "ab"]])
    assert (short.chunks.exists.shape, long.chunks.exists.shape) == ((1, 1), (2, 3))
    both = short.concatenate(long)
    assert both.chunks.exists.tolist() == [[True, False, False], [True, True, True], [True, False, False]]
    assert both.chunks.embeddings[:, 0].tolist() == [[1.0, 0.0], [0.0, 600.0], [1.0, 1.0]]
    assert both.text.tolist() == [0, 1, 2]


def test_bad_input_is_refused():
    with pytest.raises(PreplayError, match="candidate list of decision 0 is empty"):
        ActionEncoder().encode([DecisionState("t", "o")], [[]])
    with pytest.raises(PreplayError, match="not finite"):
        decisions_from_turns(turns_of([turn("a", 0, "x", float("nan"), True, {})]), ActionEncoder())
    extras = {"candidates": ["x", "x", "y"], "chosen": 2}
    with pytest.raises(PreplayError, match="candidate 2 is not the executed action"):
        decisions_from_turns(turns_of([turn("a", 0, "x", 1.0, True, extras)]), ActionEncoder())
    twin = decisions_from_turns(
        turns_of([turn("a", 0, "x", 1.0, True, extras | {"chosen": 1})]), ActionEncoder()
    )
    assert twin.chosen.tolist() == [1]
    evidence = ActionEncoder(evidence=("e",)).encode([DecisionState("t", "o")], [["a"]], [[[float("nan")]]])
    assert np.isfinite(evidence.features).all()


def test_parts_of_a_long_text_are_averaged_not_dropped():
    from preplay.critics._chunks import embed_chunks

    class Fixed:
        def encode(self, texts):
            return np.array([[float(len(t)), 1.0] for t in texts], np.float32)

    bank = embed_chunks(["a" * 40, "b" * 10], Fixed(), ChunkConfig(characters=10, parts=2))
    assert bank.embeddings[0].tolist() == [[10.0, 1.0], [10.0, 1.0]]
    assert bank.exists.tolist() == [[True, True], [True, False]]
