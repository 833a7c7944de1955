"""The Python client against a real server, and against one that is busy, broken or away."""

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from preplay.client import Client, ServerError
from preplay_serve.store import Progress


@pytest.fixture
def client(plain):
    with Client(plain.url, plain.tokens["admin"], timeout_s=10) as client:
        yield client


def test_score_and_outcome(plain, client):
    decision = client.score("long", ["a", "bb"], task="t", observation="o", session_id="by-client")
    client.record_outcome(decision.id, reward=1.0, success=True)
    assert (decision.decision, decision.action, decision.model.name) == ("act", "bb", "long")
    kept = plain.store.decisions.get(decision.id)
    assert (kept.outcome.reward, kept.session_id) == (1.0, "by-client")


def test_refusals_are_errors_with_words(client):
    with pytest.raises(ServerError, match="no critic") as caught:
        client.score("nothing", ["a"])
    assert (caught.value.status, caught.value.code) == (404, "not_found")
    assert caught.value.request_id


def test_an_evaluation_is_followed_to_its_end(plain, client):
    names = {"dataset": "logs", "models": "models", "environment": "support_desk"}
    made = client.evaluate(["env:expert"], **names, idempotency_key="mine")
    assert client.evaluate(["env:expert"], **names, idempotency_key="mine").id == made.id
    store, seen = plain.store.evaluations, []
    for state in client.follow(made.id):
        seen.append(state.status)
        if state.status == "queued":
            store.claim("me", lease_s=60, slots=100)
            store.advance(made.id, "me", Progress(stage="imagining", done=1, total=2), [])
            store.finish(made.id, "me", "failed", error="why")
    final = client.wait(made.id, timeout_s=1)
    assert (seen[0], seen[-1], final.error, final.progress.done) == ("queued", "failed", "why", 1)


def test_a_waiting_evaluation_is_cancelled(client):
    made = client.evaluate(["env:expert"], dataset="logs", models="models", environment="support_desk")
    assert client.cancel(made.id).status == "cancelled"
    with pytest.raises(ServerError):
        client.cancel("ev_00")


def test_lists(client):
    assert {m.name for m in client.models() if m.kind == "critic"} == {"long", "short"}
    assert [d.name for d in client.datasets()] == ["logs"]
    assert client.evaluations(limit=1)


class Busy(BaseHTTPRequestHandler):
    """Refuses with 503, then closes the connection, then answers as a proxy whose server died, then as asked."""

    def do_GET(self):
        self.server.asked += 1
        if self.server.asked == 2:
            return
        busy = self.server.asked < 4
        body = b"[]" if not busy else json.dumps({"error": "not our shape"}).encode()
        self.send_response({1: 503, 3: 500}.get(self.server.asked, 200))
        self.send_header("Content-Length", str(len(body)))
        if busy:
            self.send_header("Retry-After", "0")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def test_a_busy_server_is_asked_again_and_a_dead_one_told():
    server = HTTPServer(("127.0.0.1", 0), Busy)
    server.asked = 0
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}"
    with Client(url) as client:
        assert client.models() == []
    assert server.asked == 4
    server.asked = 0
    with Client(url, retries=0) as client, pytest.raises(ServerError) as caught:
        client.models()
    assert caught.value.status == 503
    server.shutdown()
    server.server_close()
    with Client(url, retries=1) as client, pytest.raises(ServerError, match="does not answer"):
        client.models()
