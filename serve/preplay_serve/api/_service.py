"""What the routes work with; they find it in ``request.app.state.service``."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from fastapi import Request

from preplay.errors import PreplayError
from preplay_serve._config import ServerConfig
from preplay_serve._scoring import Scored, ScoreItem
from preplay_serve.api._metrics import Metrics
from preplay_serve.store import Store

Decide = Callable[[ScoreItem], Awaitable[Scored | PreplayError]]


class Pending:
    """Counts what is being worked on; used on one event loop only."""

    def __init__(self):
        self.count = 0

    def __enter__(self) -> None:
        self.count += 1

    def __exit__(self, *_error: object) -> None:
        self.count -= 1


@dataclass(frozen=True)
class Service:
    """The parts of a server behind its routes. ``decide`` decides on one item, batched with others or not."""

    config: ServerConfig
    store: Store
    decide: Decide
    metrics: Metrics = field(default_factory=Metrics)
    pending: Pending = field(default_factory=Pending)
    streams: Pending = field(default_factory=Pending)


async def service_of(request: Request) -> Service:
    """Dependency of the routes; asynchronous, or it would cost a thread's turn per request."""
    return request.app.state.service
