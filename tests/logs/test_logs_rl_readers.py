"""RL datasets: Minari and RLlib, written here with the formats' own libraries or layouts."""

import json

import h5py
import msgpack
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from logs_helpers import column, reasons, write_jsonl

from preplay.logs import read_logs


def test_minari(tmp_path):
    folder = tmp_path / "door-v1" / "data"
    folder.mkdir(parents=True)
    (folder / "metadata.json").write_text(json.dumps({"algorithm_name": "expert"}))
    with h5py.File(folder / "main_data.hdf5", "w") as file:
        good = file.create_group("episode_0")
        good.attrs["seed"] = 7
        good["observations"] = np.array([[0.5, 1], [2, 3], [4, 5]])
        good["actions"] = np.array([1, 0])
        good["rewards"], good["terminations"] = np.array([0.0, 1.5]), np.array([False, True])
        good["truncations"] = np.array([False, False])
        texts = file.create_group("episode_1/observations")
        texts["mission"], texts["place"] = np.array([b"go", b"go"]), np.array([1, 2])
        file["episode_1"]["actions"], file["episode_1"]["rewards"] = np.array([2]), np.array([0.0])
        file["episode_1"]["terminations"], file["episode_1"]["truncations"] = (
            np.array([False]),
            np.array([True]),
        )
        short = file.create_group("episode_2")
        for name in ("observations", "actions", "rewards", "terminations", "truncations"):
            short[name] = np.array([0])
    result = read_logs([str(folder / "main_data.hdf5")])
    assert column(result, "session_id") == ["door-v1/episode_0"] * 2 + ["door-v1/episode_1"]
    assert column(result, "observation") == ["[0.5,1.0]", "[2.0,3.0]", '{"mission":"go","place":1}']
    assert column(result, "next_observation") == ["[2.0,3.0]", "[4.0,5.0]", '{"mission":"go","place":2}']
    assert column(result, "action") == ["1", "0", "2"]
    assert column(result, "reward") == [0.0, 1.5, 0.0]
    assert column(result, "terminated") == [False, True, False]
    assert column(result, "truncated") == [False, False, True]
    assert set(column(result, "policy")) == {"expert"}
    assert json.loads(column(result, "extras")[0]) == {"seed": "7"}
    [lost] = result.quarantined
    assert lost.source.endswith("#episode_2")
    assert lost.reason == "cannot be read (1 observations and 1 actions for 1 rewards)"


BATCH = {
    "type": "SampleBatch",
    "obs": [[0.1], [0.2]],
    "actions": [0, 1],
    "rewards": [0.0, 1.0],
    "new_obs": [[0.2], [0.3]],
    "terminateds": [False, False],
    "truncateds": [False, False],
    "eps_id": [7, 7],
    "t": [0, 1],
    "action_prob": [0.5, 0.25],
    "vf_preds": [1, 2],
}


def test_rllib_batches_join_an_episode_that_is_spread_over_lines(tmp_path):
    rest = {k: v[-1:] if isinstance(v, list) else v for k, v in BATCH.items()} | {
        "t": [2],
        "terminateds": [True],
    }
    packed = BATCH | {"obs": "BCJNGGhAnwEAAAA="}
    agents = {"type": "MultiAgentBatch", "policy_batches": {"p": BATCH | {"agent_index": [0, 0]}}}
    result = read_logs([write_jsonl(tmp_path / "out.json", [BATCH, rest, packed, agents])])
    assert column(result, "session_id") == ["7"] * 3 + ["7#p#0"] * 2
    assert column(result, "observation")[:3] == ["[0.1]", "[0.2]", "[0.2]"]
    assert column(result, "terminated") == [False, False, True, False, False]
    assert column(result, "truncated") == [False, False, False, False, True]
    assert np.exp(column(result, "behavior_logprob")[:2]) == pytest.approx([0.5, 0.25])
    assert json.loads(column(result, "extras")[1]) == {"vf_preds": 2}
    assert [r[:2] for r in reasons(result)] == [("3", "batch")]
    assert "obs is compressed" in result.quarantined[0].reason


def encode(value):
    """msgpack-numpy's layout of an array."""
    data = {
        b"nd": True,
        b"type": value.dtype.str,
        b"kind": b"",
        b"shape": value.shape,
        b"data": value.tobytes(),
    }
    return data | ({b"type": b"O", b"kind": b"O", b"data": b"\x80\x04."} if value.dtype == object else {})


def episode(identity, started, terminated, lookback=0):
    steps = [np.array([float(started + i)]) for i in range(3)]
    pre = [np.array([-1.0])] * lookback

    def buffer(data):
        return {"data": data, "lookback": lookback, "finalized": False, "space": None}

    return msgpack.packb(
        {
            "id_": identity,
            "agent_id": None,
            "module_id": "mod",
            "observations": buffer([*pre, *steps]),
            "actions": buffer([*([0] * lookback), 1, 0]),
            "rewards": buffer([*([0.0] * lookback), 0.5, 1.0]),
            "infos": buffer(np.array([None, None])),
            "extra_model_outputs": {"action_logp": buffer([*([0.0] * lookback), -0.5, -1.5])},
            "is_terminated": terminated,
            "is_truncated": False,
            "t_started": started,
        },
        default=encode,
    )


def test_rllib_episodes(tmp_path):
    items = [episode("e", 2, True, lookback=1), episode("e", 0, False), b"junk"]
    pq.write_table(pa.table({"item": pa.array(items, pa.binary())}), tmp_path / "run.parquet")
    result = read_logs([str(tmp_path / "run.parquet")])
    assert set(result.formats.values()) == {"rllib-episodes"}
    assert column(result, "turn") == [0, 1, 2, 3]
    assert column(result, "observation") == ["[0.0]", "[1.0]", "[2.0]", "[3.0]"]
    assert column(result, "next_observation") == ["[1.0]", "[2.0]", "[3.0]", "[4.0]"]
    assert column(result, "behavior_logprob") == [-0.5, -1.5, -0.5, -1.5]
    assert column(result, "terminated") == [False, False, False, True]
    assert column(result, "policy") == ["mod"] * 4
    assert [(q.source.rsplit(":", 1)[1], q.field) for q in result.quarantined] == [("3", "episode")]


def test_rllib_columns_in_parquet_are_flat_turns(tmp_path):
    rows = {
        k: BATCH[k] for k in ("eps_id", "obs", "actions", "rewards", "new_obs", "terminateds", "truncateds")
    }
    pq.write_table(pa.table(rows | {"t": [0, 1], "action_logp": [-1.0, -2.0]}), tmp_path / "rows.parquet")
    result = read_logs([str(tmp_path / "rows.parquet")])
    assert set(result.formats.values()) == {"turns-parquet"}
    assert column(result, "observation") == ["[0.1]", "[0.2]"]
    assert column(result, "behavior_logprob") == [-1.0, -2.0]
