"""Requests for the serving benchmark, and a client that keeps a number of them in flight."""

import asyncio
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
import numpy as np
import pyarrow as pa

from preplay.critics import ActionEncoder, CriticConfig, decisions_from_turns, save_critic, train_critic
from preplay.embedding import CachedEncoder, EncoderConfig
from preplay.logs import TURN_SCHEMA
from preplay.seeding import numpy_rng

CANDIDATES = 8
_TEXT = (
    "check the order refund customer again before you answer ask which item was broken and offer a new one send "
    "invoice close ticket wait escalate to a person look up account price late parcel address"
)
_WORDS = _TEXT.split()


class Load(NamedTuple):
    """What a number of requests took; times in milliseconds."""

    p50: float
    p95: float
    p99: float
    per_second: float


def request(number: int) -> dict[str, Any]:
    """Request ``number``: a state and eight candidates of about twenty words, all of them its own."""
    rng = numpy_rng(0, "serving", number)
    texts = [" ".join(rng.choice(_WORDS, rng.integers(12, 28))) for _ in range(CANDIDATES + 1)]
    state = {"task": "Help the customer.", "observation": texts[0], "turn": 0}
    return {"model": "critic", "state": state, "candidates": texts[1:]}


def make_critic(path: Path) -> None:
    """A critic on sentence embeddings; what it learned does not matter here."""
    rows = []
    for n in range(64):
        asked = request(10**6 + n)
        rows.append(
            {
                "session_id": f"s{n:02}", "turn": 0, "policy": "agent", "task": asked["state"]["task"],
                "observation": asked["state"]["observation"], "action": asked["candidates"][n % 8],
                "reward": float(n % 2), "next_observation": "", "terminated": True, "truncated": False,
                "source": "made", "record_hash": str(n),
                "extras": json.dumps({"candidates": asked["candidates"]}),
            }
        )  # fmt: skip
    encoder = ActionEncoder(encoder=CachedEncoder(EncoderConfig()))
    data = decisions_from_turns(pa.Table.from_pylist(rows, schema=TURN_SCHEMA), encoder)
    config = CriticConfig(members=1, steps=20)
    names = {"feature_names": encoder.feature_names, "fingerprint": encoder.fingerprint}
    save_critic(train_critic(config, data, seed=0, **names), path, encoder=encoder)


def measure(url: str, requests: Iterator[dict[str, Any]], *, count: int, concurrency: int) -> Load:
    """Send ``count`` requests, ``concurrency`` of them in flight at any time."""
    return asyncio.run(_measure(url, requests, count, concurrency))


async def _measure(url: str, requests: Iterator[dict[str, Any]], count: int, concurrency: int) -> Load:
    waiting, times = iter([next(requests) for _ in range(count)]), []

    async def one_after_another(session: aiohttp.ClientSession) -> None:
        for body in waiting:
            began = time.perf_counter()
            async with session.post(f"{url}/v1/score", json=body) as answer:
                await answer.read()
                answer.raise_for_status()
            times.append((time.perf_counter() - began) * 1000)

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        began = time.perf_counter()
        await asyncio.gather(*(one_after_another(session) for _ in range(concurrency)))
        seconds = time.perf_counter() - began
    p50, p95, p99 = map(float, np.percentile(times, [50, 95, 99]))
    return Load(p50, p95, p99, count / seconds)
