"""The figures a data card is made of, per part of a dataset: small tables in place of the texts."""

import hashlib

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from preplay.seeding import derive_seed

LANGUAGE_SAMPLE = 64
TEXTS = ("observation", "action", "next_observation")
_SAMPLE_CHARACTERS = 300
_SESSION_SCHEMA = pa.schema(
    [
        ("policy", pa.string()),
        ("turns", pa.int32()),
        ("total", pa.float64()),
        ("terminated", pa.bool_()),
        ("won_at_end", pa.bool_()),
        ("won_before_end", pa.bool_()),
        ("content", pa.binary(16)),
        ("rank", pa.uint64()),
        ("sample", pa.string()),
    ]
)


def turn_stats(turns: pa.Table) -> pa.Table:
    """Reward, log-probability and the number of characters of each text, per turn."""
    lengths = {name: pc.call_function("utf8_length", [turns[name]]) for name in TEXTS}
    return pa.table({"reward": turns["reward"], "logprob": turns["behavior_logprob"], **lengths})


def session_stats(turns: pa.Table, seed: int = 0) -> pa.Table:
    """Per session: policy, length, return, end, a hash of its content, and a text of the sampled ones."""
    if not turns.num_rows:
        return _SESSION_SCHEMA.empty_table()
    starts = np.flatnonzero(turns["turn"].to_numpy() == 0)
    ends = np.append(starts[1:], turns.num_rows)
    rewards = turns["reward"].to_numpy()
    terminated = turns["terminated"].to_numpy()[ends - 1]
    wins = np.add.reduceat((rewards > 0).astype(int), starts)
    last_wins = rewards[ends - 1] > 0
    heads = turns.select(["session_id", "policy", "task", "observation"]).take(pa.array(starts)).to_pylist()
    ranks = np.array([derive_seed(seed, "language", h["session_id"]) for h in heads], dtype=np.uint64)
    sampled = set(np.argsort(ranks)[:LANGUAGE_SAMPLE].tolist())
    columns = {
        "policy": [h["policy"] for h in heads],
        "turns": (ends - starts).astype(np.int32),
        "total": np.add.reduceat(rewards, starts),
        "terminated": terminated,
        "won_at_end": last_wins & terminated,
        "won_before_end": wins > last_wins,
        "content": _contents(turns, starts, ends, heads),
        "rank": ranks,
        "sample": [
            f"{h['task'] or ''} {h['observation']}"[:_SAMPLE_CHARACTERS] if i in sampled else None
            for i, h in enumerate(heads)
        ],
    }
    return pa.table(columns, schema=_SESSION_SCHEMA)


def _contents(turns: pa.Table, starts: np.ndarray, ends: np.ndarray, heads: list[dict]) -> list[bytes]:
    """A hash of policy, task, observations and actions per session."""
    observations, actions = turns["observation"].to_pylist(), turns["action"].to_pylist()
    hashes = []
    for start, end, head in zip(starts, ends, heads, strict=True):
        parts = [head["policy"], head["task"] or "", *observations[start:end], *actions[start:end]]
        hashes.append(hashlib.blake2b("\x1f".join(parts).encode(), digest_size=16).digest())
    return hashes
