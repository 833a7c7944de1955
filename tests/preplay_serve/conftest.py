"""One small critic and one plain server (ASGI, no Ray) for all tests of the HTTP side."""

import asyncio
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
import uvicorn

from preplay_serve._catalog import refresh
from preplay_serve._config import Limits, ServerConfig
from preplay_serve._scoring import Scored, ScoreItem, Scoring
from preplay_serve.api import Service, create_app
from preplay_serve.store import Store, open_store
from tests.preplay_serve.critics import make_critic

LIMITS = Limits(body_timeout_s=0.5, requests_per_second=1000, queued_evaluations=5)
SCOPES = {"reader": {"read"}, "scorer": {"score"}, "evaluator": {"evaluate", "read"}, "admin": {"admin"}}


@dataclass
class PlainServer:
    """A server in this process; ``tokens`` by name."""

    url: str
    service: Service
    tokens: dict[str, str]

    @property
    def store(self) -> Store:
        return self.service.store

    def client(self, token: str | None = "admin") -> httpx.Client:
        headers = {"Authorization": f"Bearer {self.tokens[token]}"} if token else {}
        return httpx.Client(base_url=self.url, headers=headers, timeout=20)


@pytest.fixture(scope="session")
def critic_folder(tmp_path_factory) -> Path:
    """``critics/long`` and ``critics/short``: each likes such answers."""
    folder = tmp_path_factory.mktemp("critics")
    make_critic(folder / "long", long_is_right=True)
    make_critic(folder / "short", long_is_right=False)
    return folder


@pytest.fixture(scope="session")
def plain(critic_folder, tmp_path_factory) -> Iterator[PlainServer]:
    """Everything but Serve: the routes over a store, decisions made one by one."""
    state = tmp_path_factory.mktemp("state")
    config = ServerConfig(models=str(critic_folder), state=str(state), limits=LIMITS)
    store = open_store(config.database_url)
    assert refresh(config, store) == []
    for kind, name in (("dataset", "logs"), ("world_models", "models")):
        store.artifacts.publish(kind, name, "1", "/nowhere", {})
    service = Service(config, store, one_by_one(Scoring(config, store)))
    tokens = {name: store.tokens.create(name, frozenset(scopes)) for name, scopes in SCOPES.items()}
    with running(create_app(service)) as url:
        yield PlainServer(url, service, tokens)


def one_by_one(scoring: Scoring):
    """Decide without batches."""

    async def decide(item: ScoreItem) -> Scored | Exception:
        return (await asyncio.to_thread(scoring.decide, [item]))[0]

    return decide


class running:
    """A uvicorn server in a thread."""

    def __init__(self, app):
        self._server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error"))
        self._thread = threading.Thread(target=self._server.run, daemon=True)

    def __enter__(self) -> str:
        self._thread.start()
        while not self._server.started:
            threading.Event().wait(0.02)
        return f"http://127.0.0.1:{self._server.servers[0].sockets[0].getsockname()[1]}"

    def __exit__(self, *_):
        self._server.should_exit = True
        self._thread.join(10)
