"""Loose rows become sessions; shadow actions fall on the right states."""

import numpy as np
import pytest

from preplay.errors import PreplayError
from preplay.estimators import align_shadow_actions, index_sessions


def test_unsorted_rows_are_sorted():
    index = index_sessions(["b", "a", "b", "a"], np.array([1, 1, 0, 0]))
    assert index.session_ids == ["b", "a"]
    assert index.rows.tolist() == [2, 0, 3, 1]
    assert index.offsets.tolist() == [0, 2, 4]
    assert index.quarantined == {}


def test_broken_sessions_are_counted_and_left_out():
    ids = ["dup", "dup", "gap", "gap", "late", "ok", "ok", "bad", "bad"]
    turn = np.array([0, 0, 0, 2, 1, 0, 1, 0, 1])
    valid = np.array([True] * 8 + [False])
    index = index_sessions(ids, turn, valid)
    assert index.session_ids == ["ok"]
    assert index.rows.tolist() == [5, 6]
    assert index.quarantined == {"duplicate turn": 1, "missing turn": 2, "invalid row": 1}
    assert index.examples["missing turn"] == "gap"


def test_nothing_left_is_an_error():
    with pytest.raises(PreplayError, match=r"1 × duplicate turn \(first: s\)"):
        index_sessions(["s", "s"], np.array([0, 0]))


def shadow_case():
    index = index_sessions(["x", "x", "y"], np.array([0, 1, 0]))
    follows = np.array([True, False, True])  # y was cut: its last state needs an action too
    rows = [("x", 0, 1.0), ("x", 0, 2.0), ("x", 1, 3.0), ("y", 0, 4.0), ("y", 1, 5.0), ("z", 0, 9.0)]
    return index, follows, rows


def test_shadow_actions_fall_on_their_states():
    index, follows, rows = shadow_case()
    ids, turns, features = zip(*rows, strict=True)
    made = align_shadow_actions(
        index,
        follows,
        ids,
        np.array(turns),
        np.array(features, np.float32)[:, None],
        keys=[f"k{f}" for f in features],
        logged_keys=["k1.0", "k3.0", "other"],
    )
    assert made.start_features[:, :, 0].tolist() == [[1, 2], [4, 0]]
    assert made.start_weights.tolist() == [[0.5, 0.5], [1, 0]]
    assert made.next_features[0, :, 0].tolist() == [3, 0]
    assert made.next_weights[0].tolist() == [1, 0]
    assert made.next_features[2, :, 0].tolist() == [5, 0]
    assert made.next_weights.sum(1) == pytest.approx(1)
    assert made.logged_share == pytest.approx([0.5, 1, 0])


def test_a_state_without_a_shadow_action_is_an_error():
    index, follows, rows = shadow_case()
    ids, turns, features = zip(*[r for r in rows if r != ("y", 1, 5.0)], strict=True)
    with pytest.raises(PreplayError, match="1 of 4 logged states have no shadow action"):
        align_shadow_actions(index, follows, ids, np.array(turns), np.array(features, np.float32)[:, None])
