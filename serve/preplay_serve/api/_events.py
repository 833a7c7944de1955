"""An evaluation's changes as server-sent events."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable

from starlette.concurrency import run_in_threadpool

from preplay_serve.store import FINAL, Store

_POLL_S, _ALIVE_S = 0.3, 15.0


async def events(store: Store, evaluation_id: str, gone: Callable[[], Awaitable[bool]]) -> AsyncIterator[str]:
    """``progress`` with the evaluation at every change, then ``end``; comments keep silent connections open."""
    seen, spoken = -1, time.monotonic()
    while not await gone():
        record = await run_in_threadpool(store.evaluations.get, evaluation_id)
        if record is None:
            return
        final = record.status in FINAL
        if record.revision != seen:
            seen, spoken = record.revision, time.monotonic()
            name = "end" if final else "progress"
            yield f"id: {record.revision}\nevent: {name}\ndata: {record.model_dump_json()}\n\n"
        elif time.monotonic() - spoken > _ALIVE_S:
            spoken = time.monotonic()
            yield ": alive\n\n"
        if final:
            return
        await asyncio.sleep(_POLL_S)
