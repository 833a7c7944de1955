"""Small critics to serve: they learned that long answers are right (or short ones)."""

import json
from pathlib import Path

import pyarrow as pa

from preplay.critics import ActionEncoder, CriticConfig, decisions_from_turns, save_critic, train_critic
from preplay.embedding import CachedEncoder, EncoderConfig
from preplay.logs import TURN_SCHEMA

WORDS = ("return", "x", "sorted", "sum", "len", "max", "value", "index", "while", "if")


def make_critic(path: Path, *, long_is_right: bool = True, embedded: bool = False, steps: int = 60) -> None:
    """Train and save a critic."""
    sentence = CachedEncoder(EncoderConfig(dtype="float32")) if embedded else None
    encoder = ActionEncoder(encoder=sentence)
    data = decisions_from_turns(turns(long_is_right), encoder)
    config = CriticConfig(members=1, steps=steps, weight_decay=10.0)
    critic = train_critic(
        config, data, seed=0, feature_names=encoder.feature_names, fingerprint=encoder.fingerprint
    )
    save_critic(critic, path, encoder=encoder)


def turns(long_is_right: bool) -> pa.Table:
    """Forty decisions between a short and a long answer."""
    rows = []
    for n in range(40):
        pool = [" ".join(WORDS[: 1 + n % 3]), " ".join(WORDS[i % 10] for i in range(n, n + 12))]
        action = pool[n // 20]
        right = (action == pool[1]) == long_is_right
        rows.append(
            {
                "session_id": f"s{n:02}", "turn": 0, "policy": "agent", "task": f"task {n % 5}",
                "observation": "the tests fail", "action": action, "reward": float(right), "next_observation": "",
                "terminated": True, "truncated": False, "source": "made", "record_hash": str(n),
                "extras": json.dumps({"candidates": pool, "task_name": f"task {n % 5}", "solved": right}),
            }
        )  # fmt: skip
    return pa.Table.from_pylist(rows, schema=TURN_SCHEMA)
