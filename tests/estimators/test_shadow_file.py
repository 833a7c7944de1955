"""Shadow actions from a file, down to a value: no rewards of the new policy are needed."""

import json

import numpy as np
import pytest

from preplay.errors import PreplayError
from preplay.estimators import (
    FQEConfig,
    FQEInputs,
    align_shadow_actions,
    fit_fqe,
    index_sessions,
    read_shadow_file,
)


def write(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_three_formats_read_alike(tmp_path):
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    rows = [{"session_id": "a", "turn": 0, "action": "x"}, {"session_id": "a", "turn": 1, "action": "y"}]
    table = pa.Table.from_pylist(rows)
    write(tmp_path / "s.jsonl", rows)
    pyarrow.csv.write_csv(table, tmp_path / "s.csv")
    pyarrow.parquet.write_table(table, tmp_path / "s.parquet")
    for name in ("s.jsonl", "s.csv", "s.parquet"):
        found = read_shadow_file(tmp_path / name)
        assert (found.session_id, found.turn.tolist(), found.action) == (["a", "a"], [0, 1], ["x", "y"])


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{"session_id": "a", "turn": 0}], "column 'action' is missing"),
        ([{"session_id": "a", "turn": "0", "action": "x"}], "'turn' is string"),
        (
            [{"session_id": "a", "turn": 0, "action": "x"}, {"session_id": "a", "turn": 1}],
            "1 rows have no 'action'",
        ),
    ],
)
def test_bad_files_are_explained(tmp_path, rows, message):
    with pytest.raises(PreplayError, match=message):
        read_shadow_file(write(tmp_path / "s.jsonl", rows))


def test_unknown_or_broken_files(tmp_path):
    with pytest.raises(PreplayError, match="no shadow file"):
        read_shadow_file(tmp_path / "none.jsonl")
    (tmp_path / "bad.jsonl").write_text("{not json")
    with pytest.raises(PreplayError, match="cannot be read"):
        read_shadow_file(tmp_path / "bad.jsonl")


def test_value_of_a_policy_known_only_by_its_shadow_actions(tmp_path):
    """Two steps, r = a, γ = .9, uniform log; the new policy always takes 1: V = 1.9."""
    rng, n = np.random.default_rng(0), 200
    ids, turn = np.repeat([f"s{i}" for i in range(n)], 2), np.tile([0, 1], n)
    action = rng.integers(0, 2, 2 * n)
    index = index_sessions(ids, turn)
    rows = [{"session_id": str(s), "turn": int(t), "action": "1"} for s, t in zip(ids, turn, strict=True)]
    shadow = read_shadow_file(write(tmp_path / "s.jsonl", rows))
    both, steps = np.eye(2, dtype=np.float32), np.eye(3, dtype=np.float32)
    aligned = align_shadow_actions(
        index,
        turn == 0,
        shadow.session_id,
        shadow.turn,
        both[[int(a) for a in shadow.action]],
        keys=shadow.action,
        logged_keys=[str(a) for a in action],
    )
    inputs = FQEInputs(
        offsets=index.offsets,
        state_features=steps[turn],
        action_features=both[action],
        reward=action.astype(float),
        terminated=turn == 1,
        truncated=np.zeros(2 * n, bool),
        next_state_features=steps[turn + 1],
        next_action_features=aligned.next_features,
        next_action_weights=aligned.next_weights,
        start_action_features=aligned.start_features,
        start_action_weights=aligned.start_weights,
        gamma=0.9,
    )
    fitted = fit_fqe(inputs, FQEConfig(iterations=4), seed=0)
    assert fitted.v is not None
    assert fitted.v[::2].mean() == pytest.approx(1.9, abs=0.05)
    assert aligned.logged_share.mean() == pytest.approx(action.mean())
