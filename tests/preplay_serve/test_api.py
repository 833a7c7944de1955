"""The HTTP side: decisions, evaluations, limits, pages' login - with a real store and a real critic."""

import asyncio
import json
import logging
import time

import httpx
import pytest

from preplay.control import AuditLog
from preplay_serve._audit import export_audit
from preplay_serve._config import Limits, ServerConfig
from preplay_serve._logs import configure_logs
from preplay_serve._scoring import Scoring
from preplay_serve.api import Service, create_app
from preplay_serve.api._auth import Doorkeeper
from preplay_serve.store import DecisionFilter, Progress, open_store
from tests.preplay_serve.conftest import one_by_one, running
from tests.preplay_serve.test_hostile import BODY, SPEC

EVALUATION = SPEC | {"policies": ["env:expert"], "environment": "support_desk"}


@pytest.fixture
def evaluator(plain):
    with plain.client("evaluator") as client:
        yield client
    for record in plain.store.evaluations.recent():
        plain.store.evaluations.cancel(record.id)
        plain.store.evaluations.finish(record.id, None, "cancelled")


def test_score_decides_and_keeps_the_decision(plain):
    with plain.client("scorer") as client:
        answer = client.post("/v1/score", json=BODY | {"session_id": "s1"}).json()
        other = client.post("/v1/score", json=BODY | {"model": "short"}).json()
    assert (answer["decision"], answer["action"], answer["index"]) == ("act", "bb", 1)
    assert answer["scores"][1] > answer["scores"][0]
    assert answer["model"]["encoder"] == "structure"
    assert other["scores"][0] > other["scores"][1]
    kept = plain.store.decisions.get(answer["id"])
    assert kept is not None
    assert (kept.content.candidates, kept.session_id, kept.token) == (("a", "bb"), "s1", "scorer")


def test_dangerous_candidates_are_not_chosen(plain):
    candidates = ["import os\nos.system('rm -rf /')\n" * 9, "ok"]
    with plain.client("scorer") as client:
        answer = client.post("/v1/score", json=BODY | {"candidates": candidates}).json()
    assert (answer["action"], answer["scores"][0]) == ("ok", None)
    assert "os.system" in answer["reasons"][0]


def test_outcomes_join_decisions_and_feed_retraining(plain, tmp_path):
    with plain.client("scorer") as client:
        decided = client.post("/v1/score", json=BODY | {"session_id": "flywheel"}).json()
        told = client.post(f"/v1/decisions/{decided['id']}/outcome", json={"reward": 1.5, "success": True})
        unknown = client.post("/v1/decisions/de_00/outcome", json={"reward": 1.0})
        not_a_number = client.post(f"/v1/decisions/{decided['id']}/outcome", content=b'{"reward": NaN}')
    assert (told.status_code, unknown.status_code, not_a_number.status_code) == (204, 404, 400)
    (kept,) = plain.store.decisions.recent(DecisionFilter(session_id="flywheel", has_outcome=True))
    assert kept.outcome.reward == 1.5
    export_audit(plain.store, tmp_path / "audit")
    export_audit(plain.store, tmp_path / "audit")
    rows = [r for r in AuditLog(str(tmp_path / "audit")).read().to_pylist() if r["id"] == decided["id"]]
    assert [(r["action"], r["reward"], r["success"]) for r in rows] == [("bb", 1.5, True)]


def test_an_idempotency_key_accepts_once(plain, evaluator):
    headers = {"Idempotency-Key": "k-1"}
    first = evaluator.post("/v1/evaluations", json=EVALUATION, headers=headers)
    again = evaluator.post("/v1/evaluations", json=EVALUATION, headers=headers)
    other = evaluator.post("/v1/evaluations", json=EVALUATION | {"seed": 1}, headers=headers)
    assert (first.status_code, again.status_code, other.status_code) == (202, 202, 409)
    assert first.json()["id"] == again.json()["id"]
    assert first.headers["location"] == f"/v1/evaluations/{first.json()['id']}"


def test_too_many_waiting_evaluations_are_sent_away(evaluator):
    answers = [evaluator.post("/v1/evaluations", json=EVALUATION) for _ in range(6)]
    assert [a.status_code for a in answers] == [202] * 5 + [429]
    assert int(answers[-1].headers["retry-after"]) > 0


def test_only_its_owner_or_an_admin_cancels(plain, evaluator):
    made = evaluator.post("/v1/evaluations", json=EVALUATION).json()
    stranger = plain.store.tokens.create("stranger", frozenset({"evaluate"}))
    denied = evaluator.delete(
        f"/v1/evaluations/{made['id']}", headers={"authorization": f"Bearer {stranger}"}
    )
    done = evaluator.delete(f"/v1/evaluations/{made['id']}")
    assert (denied.status_code, done.json()["status"]) == (403, "cancelled")


def test_events_follow_an_evaluation_to_its_end(plain, evaluator):
    made = evaluator.post("/v1/evaluations", json=EVALUATION).json()
    store, seen = plain.store.evaluations, []
    with evaluator.stream("GET", f"/v1/evaluations/{made['id']}/events") as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        for line in answer.iter_lines():
            if line.startswith("event: "):
                seen.append(line.removeprefix("event: "))
            if line.startswith("data: ") and json.loads(line[6:])["status"] == "queued":
                store.claim("me", lease_s=60, slots=100)
                store.advance(made["id"], "me", Progress(stage="imagining", done=1, total=2), [])
                store.finish(made["id"], "me", "succeeded", report_json='{"title": "t"}')
    assert seen[0] == "progress"
    assert seen[-1] == "end"
    final = evaluator.get(f"/v1/evaluations/{made['id']}").json()
    assert (final["report"], final["progress"]["done"]) == ({"title": "t"}, 1)


def test_overload_is_answered_at_once_with_when_to_come_back(plain):
    config = plain.service.config.model_copy(update={"limits": Limits(concurrent_scores=1)})
    service = Service(config, plain.store, one_by_one(Scoring(config, plain.store)))
    service.pending.count = 1
    with running(create_app(service)) as url, plain.client("scorer") as client:
        answer = client.post(f"{url}/v1/score", json=BODY)
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")


def test_a_decision_that_takes_too_long_is_given_up(plain):
    async def never(_item):
        await asyncio.sleep(60)

    config = plain.service.config.model_copy(update={"limits": Limits(score_timeout_s=0.05)})
    service = Service(config, plain.store, never)
    with running(create_app(service)) as url, plain.client("scorer") as client:
        began = time.monotonic()
        answer = client.post(f"{url}/v1/score", json=BODY)
    assert answer.status_code == 504
    assert time.monotonic() - began < 5
    assert service.pending.count == 0


def test_the_rate_of_a_token_is_limited(plain):
    door = Doorkeeper(plain.store, rate=0.001)
    waits = [door.wait_s("t") for _ in range(11)]
    assert waits[:10] == [0.0] * 10
    assert 900 < waits[10] <= 1000
    assert door.wait_s("other") == 0.0


def test_without_tokens_only_this_machine_is_let_in(critic_folder, tmp_path):
    config = ServerConfig(models=str(critic_folder), state=str(tmp_path), allow_anonymous=True)
    store = open_store(config.database_url)
    service = Service(config, store, one_by_one(Scoring(config, store)))
    with running(create_app(service)) as url, httpx.Client(base_url=url) as client:
        assert client.get("/v1/models").status_code == 200
        assert client.get("/v1/models", headers={"host": "evil.example"}).status_code == 421
        assert client.get("/v1/models", headers={"origin": "http://evil.example"}).status_code == 421
        assert client.get("/v1/models", headers={"authorization": "Bearer x"}).status_code == 401
    closed = config.model_copy(update={"allow_anonymous": False})
    with running(create_app(Service(closed, store, service.decide))) as url:
        assert httpx.get(f"{url}/v1/models").status_code == 401


def test_pages_need_a_login_and_changes_by_cookie_a_header(plain):
    with plain.client(None) as client:
        asked = client.get("/")
        assert (asked.status_code, asked.headers["location"]) == (303, "/login?next=/")
        assert client.get("/login").status_code == 200
        wrong = client.post("/session", data={"token": "preplay_a_b", "next": "/"})
        assert wrong.headers["location"] == "/login?failed=1"
        assert client.post("/session", data=dict.fromkeys("abcde", "x")).status_code == 400
        elsewhere = client.post("/session", data={"token": plain.tokens["admin"], "next": "//evil.example"})
        assert elsewhere.headers["location"] == "/"
        cookie = elsewhere.headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=strict" in cookie
        page = client.get("/")
        assert page.status_code == 200
        assert "default-src 'none'" in page.headers["content-security-policy"]
        assert client.post("/v1/score", json=BODY).status_code == 403
        assert client.post("/v1/score", json=BODY, headers={"X-Preplay-Request": "1"}).status_code == 200


def test_metrics_and_lists(plain):
    with plain.client("admin") as client:
        assert client.get("/healthz").json() == client.get("/readyz").json() == {"status": "ok"}
        models = client.get("/v1/models").json()
        assert {m["name"] for m in models if m["kind"] == "critic"} == {"long", "short"}
        assert "/nowhere" not in json.dumps(models)
        assert [d["name"] for d in client.get("/v1/datasets").json()] == ["logs"]
        assert {"name": "env:expert", "environment": "support_desk"} in client.get("/v1/policies").json()
        text = client.get("/metrics").text
    assert 'preplay_requests_total{method="GET",route="/healthz",status="200"}' in text


def test_logs_are_json_lines_without_texts(plain, capfd):
    configure_logs()
    with plain.client("scorer") as client:
        secret = BODY | {"state": {"task": "very private text", "observation": "o"}}
        client.post("/v1/score", json=secret, headers={"x-request-id": "my-id"})
        client.get("/v1/evaluations/private-path?q=private-query")
    time.sleep(0.2)  # a line is written after its answer
    logging.getLogger("preplay_serve").handlers.clear()
    lines = [json.loads(line) for line in capfd.readouterr().err.splitlines() if '"request"' in line]
    assert {"request_id": "my-id", "route": "/v1/score", "status": 200, "token": "scorer"}.items() <= lines[
        -2
    ].items()
    assert "private" not in json.dumps(lines)
