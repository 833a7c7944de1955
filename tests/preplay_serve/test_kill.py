"""Kill -9 of anything during evaluations: each accepted one ends, and equals an undisturbed run."""

import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
import yaml

from preplay.client import Client, ServerError
from preplay_serve.store import open_store
from tests._processes import descendants, wait_for
from tests.preplay_serve.conftest import free_port
from tests.preplay_serve.served import SPEC, TRUTH_SESSIONS, comparable

pytestmark = pytest.mark.slow


class Server:
    """``preplay serve`` in a process of its own, as an operator starts it."""

    def __init__(self, folder: Path, models: Path):
        self.port, self.config = free_port(), folder / "server.yaml"
        settings = {
            "models": str(models), "state": str(folder / "state"), "cache": str(models / ".cache"),
            "evaluations": {"truth_sessions": TRUTH_SESSIONS, "lease_s": 3, "concurrency": 1},
        }  # fmt: skip
        self.config.write_text(yaml.safe_dump(settings))
        self.store = open_store(f"sqlite:///{folder}/state/preplay.db")
        self.token = self.store.tokens.create("test", frozenset({"read", "score", "evaluate"}))
        self.client = Client(f"http://127.0.0.1:{self.port}", self.token, timeout_s=20, retries=8)
        self.process = self.start()

    def start(self) -> subprocess.Popen:
        preplay = str(Path(sys.executable).with_name("preplay"))
        command = [
            preplay,
            "serve",
            "--config",
            str(self.config),
            "--port",
            str(self.port),
            "--num-cpus",
            "2",
        ]
        self.process = subprocess.Popen(
            command,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=os.environ | {"RAY_ADDRESS": "local"},
        )
        wait_for(self.answers, 180)
        return self.process

    def answers(self) -> bool:
        with suppress(ServerError):
            return bool(Client(f"http://127.0.0.1:{self.port}", self.token, retries=0).models())
        return False

    def kill(self, title: str) -> None:
        """SIGKILL what is called so."""
        pids = descendants(self.process.pid, title)
        assert pids, title
        for pid in pids:
            os.kill(pid, signal.SIGKILL)

    def kill_everything(self) -> None:
        """SIGKILL the server and all that it started, as a power cut would."""
        for process in [
            *psutil.Process(self.process.pid).children(recursive=True),
            psutil.Process(self.process.pid),
        ]:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        self.process.wait(30)

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(90)


@pytest.fixture(scope="module")
def server(trained, reference, tmp_path_factory):
    server = Server(tmp_path_factory.mktemp("kill"), trained)
    yield server
    server.kill_everything()


def running(server: Server) -> str:
    """An evaluation that has imagined something already."""
    made = server.client.evaluate(**SPEC)
    wait_for(lambda: server.client.evaluation(made.id).progress.done > 0, 300)
    return made.id


@pytest.mark.parametrize(
    "title", ["ray::evaluate", "ray::ServeReplica:preplay:Evaluator", "ray::ServeController"]
)
def test_a_process_is_killed(server, reference, title):
    evaluation = running(server)
    server.kill(title)
    final = server.client.wait(evaluation, timeout_s=400)
    assert final.status == "succeeded"
    assert comparable(final.report) == comparable(reference)
    assert server.client.score("long", ["a", "bb"]).action == "bb"


def test_the_whole_server_is_killed(server, reference):
    first = running(server)
    second = server.client.evaluate(**SPEC | {"seed": 4}).id
    server.kill_everything()
    server.start()
    for evaluation in (first, second):
        assert server.client.wait(evaluation, timeout_s=400).status == "succeeded"
    assert comparable(server.client.evaluation(first).report) == comparable(reference)


class Clients:
    """Agents that ask for decisions without a pause, and note those they were given."""

    def __init__(self, server: Server, count: int):
        self.answered: list[str] = []
        self.wrong: list[str] = []
        self._server, self._stop = server, threading.Event()
        self._threads = [threading.Thread(target=self._ask) for _ in range(count)]

    def __enter__(self) -> "Clients":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _ask(self) -> None:
        while not self._stop.is_set():
            try:
                decided = self._server.client.score("long", ["a", "bb"])
            except ServerError as error:  # away for longer than the client tries again
                if not error.passing:
                    self.wrong.append(f"{error.status} {error.what}")
                continue
            self.answered.append(decided.id)
            if decided.action != "bb":
                self.wrong.append(str(decided))


def test_kills_under_many_clients_lose_nothing(server, reference):
    """Neither an accepted evaluation nor a decision that was answered."""
    accepted = []
    with Clients(server, 16) as clients:
        for title in ("ray::ServeReplica:preplay:Api", "ray::evaluate", "ray::ServeController"):
            accepted.append(running(server))
            before = len(clients.answered)
            server.kill(title)
            wait_for(lambda seen=before: len(clients.answered) > seen + 50, 120)
        server.kill_everything()
        server.start()
        finals = [server.client.wait(evaluation, timeout_s=400) for evaluation in accepted]
    assert clients.wrong == []
    assert [final.status for final in finals] == ["succeeded"] * 3
    assert all(comparable(final.report) == comparable(reference) for final in finals)
    kept = {record.id for record in server.store.decisions.all()}
    assert len(clients.answered) > 200
    assert set(clients.answered) <= kept


def test_a_stopped_server_gives_back_what_runs(server, reference):
    evaluation = running(server)
    assert server.stop() == 0
    kept = server.store.evaluations.get(evaluation)
    assert kept is not None
    assert kept.status == "running"
    server.start()
    wait_for(lambda: server.client.evaluation(evaluation).attempts == 2, 60)
    assert server.client.wait(evaluation, timeout_s=400).status == "succeeded"
    assert comparable(server.client.evaluation(evaluation).report) == comparable(reference)
