"""Many agents, one critic: decisions asked for at about the same time are scored together."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from preplay.control._controller import Controller, Evidence
from preplay.control._decision import Decision
from preplay.critics import DecisionState


@dataclass
class _Request:
    state: DecisionState
    candidates: Sequence[str]
    evidence: Evidence | None
    context: str
    answer: "asyncio.Future[Decision]"


class BatchingController:
    """An asynchronous face of a controller.

    Args:
        controller: Decides; its work runs in a thread, so that the event loop stays free.
        max_batch: Decisions in one pass at most.
        max_wait_s: How long the first of a batch waits for others.
    """

    def __init__(self, controller: Controller, *, max_batch: int = 64, max_wait_s: float = 0.005):
        self._controller, self._max_batch, self._max_wait = controller, max_batch, max_wait_s
        self._waiting: list[_Request] = []
        self._timer: asyncio.Task[None] | None = None
        self._lock = asyncio.Lock()
        self.passes = 0

    async def decide(
        self,
        state: DecisionState,
        candidates: Sequence[str],
        *,
        evidence: Evidence | None = None,
        context: str = "",
    ) -> Decision:
        """Like :meth:`Controller.decide`."""
        answer: asyncio.Future[Decision] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Request(state, candidates, evidence, context, answer))
        if self._timer is None or self._timer.done():
            self._timer = asyncio.create_task(self._drain())
        return await answer

    async def _drain(self) -> None:
        await asyncio.sleep(self._max_wait)
        async with self._lock:
            while self._waiting:
                batch, self._waiting = self._waiting[: self._max_batch], self._waiting[self._max_batch :]
                await self._answer(batch)

    async def _answer(self, batch: list[_Request]) -> None:
        self.passes += 1
        work = [(r.state, r.candidates) for r in batch]
        evidence, contexts = [r.evidence for r in batch], [r.context for r in batch]
        try:
            decisions = await asyncio.to_thread(self._controller.decide_many, work, evidence, contexts)
        except BaseException as error:
            for request in batch:
                if not request.answer.done():
                    request.answer.set_exception(error)
            if not isinstance(error, Exception):
                raise
            return
        for request, decision in zip(batch, decisions, strict=True):
            if not request.answer.done():
                request.answer.set_result(decision)
