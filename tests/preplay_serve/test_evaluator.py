"""Estimates so far, and policies behind an endpoint."""

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import numpy as np
import pytest

from preplay.errors import PreplayError
from preplay.policies import AgentState, AnswerCache
from preplay.rollout import FinishedBlock
from preplay.seeding import numpy_rng
from preplay_serve._config import EndpointSettings
from preplay_serve.evaluator import EndpointPolicy
from preplay_serve.evaluator._execute import Watch, partial_estimate


def test_an_estimate_so_far_is_the_mean_over_initial_states():
    blocks = [(np.array([0, 0, 1]), np.array([1.0, 3.0, 4.0])), (np.array([2]), np.array([6.0]))]
    found = partial_estimate("p", blocks, 0.95)
    # Means per state: 2, 4, 6. Their mean is 4, its standard error 2 / sqrt(3).
    assert found.value == pytest.approx(4.0)
    assert found.high - found.value == pytest.approx(1.959964 * 2 / np.sqrt(3), rel=1e-6)
    assert found.sessions == 4


def test_only_the_asked_policies_are_told():
    told = []
    watch = Watch(lambda progress, partial: told.append((progress, partial)))
    watch.begin({"env:a": "env:a"})
    one = {"initial": np.array([0, 1]), "returns": np.array([1.0, 2.0]), "total": 2}
    watch.block(FinishedBlock("env:logged@1", done=1, **one))
    watch.block(FinishedBlock("env:a@1", done=2, **one))
    progress, partial = told[-1]
    assert (progress.stage, progress.done, [p.policy for p in partial]) == ("estimating", 2, ["env:a"])
    assert partial[0].value == 1.5


class Endpoint(BaseHTTPRequestHandler):
    """Answers the last message in capitals; the first time it is busy."""

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.seen.append((self.path, self.headers["authorization"], body))
        status = 503 if len(self.server.seen) == 1 else self.server.status
        said = body["messages"][-1]["content"].upper()
        content = json.dumps({"choices": [{"message": {"content": said}}]}).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_):
        pass


@pytest.fixture
def endpoint():
    server = HTTPServer(("127.0.0.1", 0), Endpoint)
    server.seen, server.status = [], 200
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def policy(endpoint, **changes) -> EndpointPolicy:
    url = f"http://127.0.0.1:{endpoint.server_port}/v1"
    return EndpointPolicy("small", EndpointSettings(url=url, model="m", **changes))


def test_an_endpoint_is_a_policy_and_its_key_stays_in_the_server(endpoint, monkeypatch):
    monkeypatch.setenv("SMALL_KEY", "secret-key")
    asked = policy(endpoint, key_variable="SMALL_KEY", system="Be kind.")
    state = AgentState("hello", task="Sell.", history=(("hi", "yes?"),))
    answers = AnswerCache(asked).act([state, state], numpy_rng(0, "t"))
    assert answers.actions == ["HELLO", "HELLO"]
    path, key, body = endpoint.seen[-1]
    assert (path, key, len(endpoint.seen)) == ("/v1/chat/completions", "Bearer secret-key", 2)
    assert [m["role"] for m in body["messages"]] == ["system", "user", "assistant", "user"]
    assert body["messages"][0]["content"] == "Be kind.\n\nSell."
    assert body["temperature"] == 0
    assert "secret-key" not in repr(vars(asked))


def test_a_refusal_of_the_endpoint_ends_the_evaluation_in_words(endpoint, monkeypatch):
    endpoint.status = 401
    with pytest.raises(PreplayError, match="answers 401"):
        policy(endpoint).act([AgentState("x")], numpy_rng(0, "t"))
    monkeypatch.delenv("SMALL_KEY", raising=False)
    with pytest.raises(PreplayError, match="key is not set"):
        policy(endpoint, key_variable="SMALL_KEY").act([AgentState("x")], numpy_rng(0, "t"))
