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
    texts = [_bytes_of(turns[name]) for name in ("observation", "action")]
    hashes = []
    for start, end, head in zip(starts, ends, heads, strict=True):
        digest = hashlib.blake2b(repr((head["policy"], head["task"])).encode(), digest_size=16)
        for offsets, data in texts:
            own = offsets[start : end + 1]
            digest.update((own - own[0]).tobytes())
            digest.update(data[own[0] : own[-1]])
        hashes.append(digest.digest())
    return hashes


def _bytes_of(column: pa.ChunkedArray) -> tuple[np.ndarray, memoryview]:
    """Where each text (and the one after the last) begins, and the bytes of all of them."""
    whole = pa.concat_arrays(column.cast(pa.large_string()).chunks)
    _, offsets, data = whole.buffers()
    places = np.frombuffer(offsets, np.int64)[whole.offset : whole.offset + len(whole) + 1]
    return places, memoryview(data or b"")
