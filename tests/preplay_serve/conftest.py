"""One small critic and one plain server (ASGI, no Ray) for all tests of the HTTP side."""

import asyncio
import shutil
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
import uvicorn

from preplay.report import EvaluationReport
from preplay_serve._catalog import refresh
from preplay_serve._config import EvaluationSettings, Limits, ScoringSettings, ServerConfig
from preplay_serve._scoring import Scored, ScoreItem, Scoring
from preplay_serve.api import Service, create_app
from preplay_serve.store import Store, open_store
from tests.preplay_serve.critics import make_critic
from tests.preplay_serve.served import TRUTH_SESSIONS, Served, make_models, run_reference

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


@pytest.fixture(scope="session")
def trained(ray2, critic_folder, tmp_path_factory) -> Path:
    """A models folder with critics, an embedded dataset and a world model; ``cache`` is the embedding cache."""
    root = tmp_path_factory.mktemp("models")
    shutil.copytree(critic_folder, root, dirs_exist_ok=True)
    make_models(root / "shop", root / ".cache")
    return root


@pytest.fixture(scope="session")
def reference(trained, tmp_path_factory) -> EvaluationReport:
    """The undisturbed evaluation."""
    return run_reference(trained, tmp_path_factory.mktemp("reference"), trained / ".cache")


@pytest.fixture(scope="module")
def served(trained, tmp_path_factory) -> Iterator[Served]:
    """The application on Serve, in the suite's Ray."""
    from ray import serve

    from preplay_serve.app import application

    config = ServerConfig(
        models=str(trained),
        state=str(tmp_path_factory.mktemp("served")),
        cache=str(trained / ".cache"),
        scoring=ScoringSettings(poll_s=0.2),
        evaluations=EvaluationSettings(truth_sessions=TRUTH_SESSIONS, lease_s=3, poll_s=0.2),
    )
    store = open_store(config.database_url)
    token = store.tokens.create("test", frozenset({"read", "score", "evaluate"}))
    port = free_port()
    serve.start(http_options={"host": "127.0.0.1", "port": port})
    serve.run(application(config), name="preplay", route_prefix="/")
    yield Served(f"http://127.0.0.1:{port}", token, config, store)
    serve.shutdown()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
