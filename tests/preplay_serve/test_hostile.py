"""Hostile input, each with its expected answer: a clear refusal, never a 500, never a trace, never a file."""

import json
import socket
import time

import pytest

BODY = {"model": "long", "state": {"task": "t", "observation": "o"}, "candidates": ["a", "bb"]}
SPEC = {"policies": ["cloned:x"], "dataset": "logs", "models": "models"}


def deep(levels: int) -> str:
    return '{"model": "long", "state": ' + '{"a":' * levels + "1" + "}" * levels + ', "candidates": ["a"]}'


def changed(**changes) -> str:
    return json.dumps(BODY | changes)


SCORE = {
    "an empty body": ("", 422),
    "not JSON": ("{", 400),
    "a list instead of an object": ("[]", 422),
    "NaN": (changed(evidence=[[float("nan")], [1.0]]), 400),
    "Infinity": (changed(evidence=[[float("inf")], [1.0]]), 400),
    "a number beyond floats": (json.dumps(BODY)[:-1] + ', "evidence": [[1e999], [1]]}', 422),
    "an integer of 5000 digits": (json.dumps(BODY)[:-1] + f', "evidence": [[{"9" * 5000}], [1]]}}', 400),
    "invalid UTF-8": (b'{"model": "\xff\xfe"}', 400),
    "a lone surrogate": ('{"model": "long", "state": {"task": "\\ud800"}, "candidates": ["a"]}', 400),
    "nested 100 levels": (deep(100), 400),
    "nested 20,000 levels": (deep(20_000), 400),
    "a million candidates": (json.dumps(BODY | {"candidates": ["a"] * 10**6}), 413),
    "a hundred candidates": (changed(candidates=["a"] * 100), 413),
    "no candidates": (changed(candidates=[]), 422),
    "a huge text": (changed(candidates=["a" * 200_000]), 413),
    "a body of two megabytes": (changed(candidates=["a" * 2**21]), 413),
    "an unknown field": (changed(shell="rm"), 422),
    "a string for a number": (changed(state={"turn": "1"}), 422),
    "a negative turn": (changed(state={"turn": -1}), 422),
    "an unknown model": (changed(model="other"), 404),
    "a path as model": (changed(model="../../etc/passwd"), 404),
    "an absolute path as model": (changed(model="/etc/passwd"), 404),
    "a URL as model": (changed(model="http://169.254.169.254/latest"), 404),
    "a NUL in the model": (changed(model="long\0"), 404),
    "evidence that the critic does not know": (changed(evidence=[[1.0], [2.0]]), 422),
    "a session id with control characters": (changed(session_id="a\nb"), 422),
}


@pytest.mark.parametrize("name", SCORE)
def test_score_refuses(plain, name):
    body, status = SCORE[name]
    content = body if isinstance(body, bytes) else body.encode("utf-8", "surrogatepass")
    with plain.client("scorer") as client:
        answer = client.post("/v1/score", content=content, headers={"content-type": "application/json"})
    assert answer.status_code == status, answer.text
    check_problem(answer)


TYPES = {"application/form+json": 400, "text/plain": 400, "application/x-www-form-urlencoded": 422}


@pytest.mark.parametrize("content_type", TYPES)
def test_other_content_types_do_not_get_past_the_checks(plain, content_type):
    body = b'{"model": "long", "state": {"task": "\\ud800"}, "candidates": ["a"]}'
    with plain.client("scorer") as client:
        answer = client.post("/v1/score", content=body, headers={"content-type": content_type})
    assert answer.status_code == TYPES[content_type]
    check_problem(answer)


EVALUATION = {
    "a path as dataset": ({"dataset": "../../etc"}, 422),
    "a traversal inside a name": ({"dataset": "logs/../../etc"}, 404),
    "an absolute path as models": ({"models": "/etc"}, 422),
    "an unknown dataset": ({"dataset": "nothing"}, 404),
    "a Python module": ({"policies": ["python:os:system"]}, 404),
    "a path as clone": ({"policies": ["cloned:/etc/passwd"]}, 404),
    "an unregistered endpoint": ({"policies": ["endpoint:http://evil.example"]}, 404),
    "a key in the body": ({"api_key": "secret"}, 422),
    "a form that does not exist": ({"policies": ["file:/etc/passwd"]}, 422),
    "a hundred policies": ({"policies": ["env:expert"] * 100, "environment": "support_desk"}, 422),
    "an unknown environment": ({"environment": "prod"}, 404),
    "a negative seed": ({"seed": -1}, 422),
}


@pytest.mark.parametrize("name", EVALUATION)
def test_evaluations_refuse(plain, name):
    changes, status = EVALUATION[name]
    before = plain.store.evaluations.count()
    with plain.client("evaluator") as client:
        answer = client.post("/v1/evaluations", json=SPEC | changes)
    assert answer.status_code == status, answer.text
    check_problem(answer)
    assert plain.store.evaluations.count() == before


PATHS = {
    "/v1/evaluations/..%2f..%2fetc%2fpasswd": 404,
    "/v1/evaluations/ev_zz": 422,
    "/v1/evaluations/ev_00": 404,
    "/v1/evaluations/ev_" + "0" * 500: 422,
    "/v1/evaluations?limit=0": 422,
    "/v1/evaluations?limit=1e9": 422,
    "/v1/evaluations?before=%00": 422,
    "/v1/decisions?since=yesterday": 422,
    "/v1/decisions?text=%ff": 200,
    "/v1/nothing": 404,
    "/.env": 404,
    "/static/..%2f..%2fapp.py": 404,
}


@pytest.mark.parametrize("path", PATHS)
def test_paths_are_only_names(plain, path):
    with plain.client("reader") as client:
        answer = client.get(path)
    assert answer.status_code == PATHS[path], answer.text
    assert "Traceback" not in answer.text


TOKENS = {
    "none": (None, 401),
    "no scheme": ("preplay_x_y", 401),
    "another scheme": ("Basic YTpi", 401),
    "empty": ("Bearer", 401),
    "unknown": ("Bearer preplay_000000000000_abc", 401),
    "not ASCII": ("Bearer \xe9\xe9".encode("latin-1"), 401),
    "an injection": ("Bearer preplay_' or '1'='1_x", 401),
    "very long": ("Bearer preplay_" + "a" * 20_000, 401),
}


@pytest.mark.parametrize("name", TOKENS)
def test_wrong_tokens(plain, name):
    header, status = TOKENS[name]
    with plain.client(None) as client:
        answer = client.post(
            "/v1/score", json=BODY, headers={} if header is None else {"authorization": header}
        )
    assert answer.status_code == status, answer.text
    assert answer.headers["www-authenticate"] == "Bearer"
    check_problem(answer)


SCOPES = [
    ("reader", "POST", "/v1/score", 403),
    ("scorer", "GET", "/v1/models", 403),
    ("scorer", "POST", "/v1/evaluations", 403),
    ("reader", "DELETE", "/v1/evaluations/ev_00", 403),
    ("evaluator", "POST", "/v1/models/refresh", 403),
    ("scorer", "GET", "/metrics", 403),
    ("admin", "GET", "/v1/models", 200),
]


@pytest.mark.parametrize(("token", "method", "path", "status"), SCOPES)
def test_scopes(plain, token, method, path, status):
    body = {"json": BODY if path == "/v1/score" else SPEC} if method == "POST" else {}
    with plain.client(token) as client:
        answer = client.request(method, path, **body)
    assert answer.status_code == status, answer.text


RAW = {
    "two different lengths": (
        "POST /v1/score HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n", 400,
    ),
    "a negative length": ("POST /v1/score HTTP/1.1\r\nHost: h\r\nContent-Length: -1\r\n\r\n", 400),
    "length and chunks": (
        "POST /v1/score HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400,
    ),
    "a line break in the request id": ("GET /healthz HTTP/1.1\r\nHost: h\r\nX-Request-Id: a\tb\r\n\r\n", 200),
    "a hundred kilobytes of headers": ("GET /healthz HTTP/1.1\r\nHost: h\r\nX-A: " + "a" * 10**5 + "\r\n\r\n", 431),
    "not HTTP": ("\x16\x03\x01\x02\r\n\r\n", 400),
    "a body that never comes": ("POST /v1/score HTTP/1.1\r\nHost: h\r\nContent-Length: 50\r\n\r\n{", 408),
}  # fmt: skip


@pytest.mark.parametrize("name", RAW)
def test_raw_requests(plain, name):
    text, status = RAW[name]
    host, port = plain.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=10) as connection:
        connection.sendall(text.encode("latin-1"))
        answer = connection.recv(65_536).decode("latin-1")
    assert answer.split(" ")[1] == str(status), answer
    assert "a\tb" not in answer


def test_slow_clients_do_not_hold_up_others(plain):
    host, port = plain.url.removeprefix("http://").split(":")
    slow = [socket.create_connection((host, int(port))) for _ in range(30)]
    for connection in slow:
        connection.sendall(b"POST /v1/score HTTP/1.1\r\nHost: h\r\nContent-Length: 50\r\n\r\n{")
    began = time.monotonic()
    with plain.client("scorer") as client:
        assert client.post("/v1/score", json=BODY).status_code == 200
    assert time.monotonic() - began < 2
    for connection in slow:
        connection.close()


def check_problem(answer) -> None:
    error = answer.json()["error"]
    assert error["request_id"] == answer.headers["x-request-id"]
    assert error["message"]
    assert not any(word in answer.text for word in ("Traceback", "site-packages", ".py", "sqlite", "root:"))


@pytest.mark.parametrize("query", ["limits=5", "limit=5&limit=6", "since=5", "&".join(["limit=1"] * 3000)])
def test_queries_that_would_be_misunderstood_are_refused(plain, query):
    with plain.client("reader") as client:
        answer = client.get(f"/v1/decisions?{query}")
    assert answer.status_code == 422
    check_problem(answer)
