"""One encoder for all tests of this folder, and turns whose texts are easy to count."""

import numpy as np
import pyarrow as pa
import pytest

from preplay.embedding import Encoder, EncoderConfig, load_encoder
from preplay.logs import TURN_SCHEMA

WORDS = ("order", "refund", "late", "account", "login", "error", "invoice", "shipping", "help", "please")


@pytest.fixture(scope="session")
def encoder() -> Encoder:
    return load_encoder(EncoderConfig())


def sentences(count: int, words: int, seed: int = 0) -> list[str]:
    """Distinct texts: each ends with its number."""
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice(WORDS, words)) + f" {i}" for i in range(count)]


def make_turns(observations: list[str], task: str | None = None) -> pa.Table:
    """Sessions of two turns: o0 -a-> o1 -a-> o2, the next session starts at o2; every action is "ok"."""
    rows = [
        {
            "session_id": f"s{i // 2:05d}",
            "turn": i % 2,
            "policy": "p",
            "task": task if i // 2 % 2 else None,
            "observation": observations[i],
            "action": "ok",
            "reward": 0.0,
            "next_observation": observations[i + 1],
            "terminated": i % 2 == 1,
            "truncated": False,
            "extras": "{}",
            "source": f"made:{i}",
            "record_hash": "",
        }
        for i in range((len(observations) - 1) // 2 * 2)
    ]
    return pa.Table.from_pylist(rows, schema=TURN_SCHEMA)
