"""The store: fair claims, leases, one final state, and the same on SQLite and PostgreSQL."""

import datetime as dt
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from sqlalchemy import text

from preplay.control import AuditLog
from preplay.errors import PreplayError
from preplay_serve._audit import export_audit
from preplay_serve.store import (
    DecisionContent,
    DecisionFilter,
    DecisionRecord,
    EvaluationSpec,
    OutcomeRecord,
    PartialEstimate,
    Progress,
    Store,
    new_id,
    open_store,
)
from tests.preplay_serve.conftest import free_port

SPEC = EvaluationSpec(policies=("env:a",), dataset="d", models="m")


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def store(request, tmp_path) -> Iterator[Store]:
    url = f"sqlite:///{tmp_path}/store.db"
    if request.param == "postgresql":
        pytest.importorskip("psycopg", reason="needs psycopg")
        url = request.getfixturevalue("postgres")
    store = open_store(url)
    yield store
    store.close()


@pytest.fixture(scope="module")
def postgres_server():
    """A PostgreSQL server of this test run; as root it is started as the user of that name, as it insists."""
    found = shutil.which("postgres")
    if found is None:
        pytest.skip("needs PostgreSQL")
    programs, user = Path(found).resolve().parent, "postgres" if os.getuid() == 0 else None
    folder, port = Path(tempfile.mkdtemp(prefix="preplay-postgres-")), free_port()
    if user:
        shutil.chown(folder, user)
    options = {"user": user, "cwd": folder, "stdout": subprocess.DEVNULL}
    subprocess.run(
        [programs / "initdb", "-D", folder / "data", "-U", "preplay", "-A", "trust"], check=True, **options
    )
    command = [programs / "postgres", "-D", folder / "data", "-p", str(port), "-k", folder, "-h", "127.0.0.1"]
    with subprocess.Popen(command, **options) as process:
        yield f"127.0.0.1:{port}"
        process.send_signal(signal.SIGINT)
    shutil.rmtree(folder)


@pytest.fixture
def postgres(postgres_server) -> str:
    """URL of an empty database."""
    import psycopg

    name = f"t{time.monotonic_ns()}"
    for _ in range(100):
        with suppress(psycopg.OperationalError):
            with psycopg.connect(
                f"postgresql://preplay@{postgres_server}/postgres", autocommit=True
            ) as connection:
                connection.execute(f"create database {name}")
            return f"postgresql+psycopg://preplay@{postgres_server}/{name}"
        time.sleep(0.1)
    raise TimeoutError("PostgreSQL does not answer")


def decision(**changes) -> DecisionRecord:
    content = DecisionContent(
        task="Sum a list", observation='it says "no"', turn=0, candidates=("a", "b"), scores=(1.0, None),
        action="a", index=0, confidence=1.0, reasons=(),
    )  # fmt: skip
    values = {
        "id": new_id("de"), "time": dt.datetime.now(dt.UTC), "model": "m", "version": "v", "decision": "act",
        "token": "t", "session_id": "s", "content": content,
    }  # fmt: skip
    return DecisionRecord.model_validate(values | changes)


def test_an_exported_decision_keeps_its_evidence(store, tmp_path):
    """With it a critic is retrained; decisions stored before it was kept have none."""
    known, before = decision(), decision()
    known = known.model_copy(
        update={"content": known.content.model_copy(update={"evidence": ((0.5,), (1.0,))})}
    )
    store.decisions.add([known, before])
    assert export_audit(store, tmp_path / "audit") == 2
    rows = AuditLog(str(tmp_path / "audit")).read().to_pylist()
    assert {r["id"]: r["evidence"] for r in rows} == {known.id: [[0.5], [1.0]], before.id: None}


def test_tokens_take_turns(store):
    for token in ("many", "many", "many", "few"):
        store.evaluations.create(SPEC, token=token)
    order = []
    for _ in range(4):
        record = store.evaluations.claim("me", lease_s=60, slots=1)
        order.append(record.token)
        store.evaluations.finish(record.id, "me", "succeeded", report_json="{}")
    assert order == ["many", "few", "many", "many"]


def test_no_more_run_than_there_are_slots(store):
    for _ in range(3):
        store.evaluations.create(SPEC, token="t")
    claimed = [store.evaluations.claim("me", lease_s=60, slots=2) for _ in range(3)]
    assert [c is not None for c in claimed] == [True, True, False]


def test_an_evaluation_whose_owner_fell_silent_is_taken_over_and_ends_once(store):
    made, _ = store.evaluations.create(SPEC, token="t")
    store.evaluations.claim("dead", lease_s=-1, slots=1)
    again = store.evaluations.claim("alive", lease_s=60, slots=1)
    assert (again.id, again.attempts) == (made.id, 2)
    assert store.evaluations.keep(made.id, "dead", lease_s=60) is None
    assert not store.evaluations.finish(made.id, "dead", "succeeded", report_json="{}")
    assert store.evaluations.finish(made.id, "alive", "succeeded", report_json='{"a": 1}')
    assert not store.evaluations.finish(made.id, "alive", "failed")
    assert store.evaluations.report_json(made.id) == '{"a": 1}'


def test_cancel_ends_what_waits_and_asks_what_runs(store):
    first, _ = store.evaluations.create(SPEC, token="t")
    store.evaluations.claim("me", lease_s=60, slots=1)
    second, _ = store.evaluations.create(SPEC, token="t")
    assert store.evaluations.cancel(second.id).status == "cancelled"
    assert store.evaluations.cancel(first.id).status == "cancelling"
    assert store.evaluations.keep(first.id, "me", lease_s=-1) == "cancelling"
    assert store.evaluations.abandoned() == [first.id]
    store.evaluations.finish(first.id, None, "cancelled")
    assert store.evaluations.cancel(first.id).status == "cancelled"
    assert store.evaluations.count() == {"cancelled": 2}


def test_progress_and_estimates_so_far_are_read_back(store):
    made, _ = store.evaluations.create(SPEC, token="t")
    store.evaluations.claim("me", lease_s=60, slots=1)
    partial = PartialEstimate(policy="env:a", value=1, low=0, high=2, level=0.95, sessions=10)
    store.evaluations.advance(made.id, "me", Progress(stage="imagining", done=1, total=3), [partial])
    found = store.evaluations.get(made.id)
    assert (found.progress.done, found.partial, found.revision) == (1, (partial,), 2)


def test_pages_of_evaluations(store):
    ids = [store.evaluations.create(SPEC, token="t")[0].id for _ in range(5)]
    first = store.evaluations.recent(limit=2)
    rest = store.evaluations.recent(limit=10, before=first[-1].id)
    assert sorted(r.id for r in first + rest) == sorted(ids)


def test_an_idempotency_key_is_the_tokens_own(store):
    first, new = store.evaluations.create(SPEC, token="t", idempotency_key="k")
    again, newer = store.evaluations.create(SPEC, token="t", idempotency_key="k")
    other, newest = store.evaluations.create(SPEC, token="u", idempotency_key="k")
    assert (new, newer, newest) == (True, False, True)
    assert first.id == again.id != other.id


def test_decisions_are_filtered(store):
    store.decisions.add([decision(), decision(model="n", decision="review"), decision(session_id="z")])
    (known,) = store.decisions.recent(DecisionFilter(session_id="z"))
    assert store.decisions.record_outcome(known.id, OutcomeRecord(reward=2.0, success=False))
    assert not store.decisions.record_outcome("de_0", OutcomeRecord(reward=2.0))
    wanted = {
        "model": ("n", 1), "decision": ("act", 2), "has_outcome": (True, 1), "text": ('SAYS "no"', 3),
        "since": (dt.datetime.now(dt.UTC) + dt.timedelta(hours=1), 0),
    }  # fmt: skip
    found = {k: store.decisions.count(DecisionFilter(**{k: v})) for k, (v, _) in wanted.items()}
    assert found == {k: n for k, (_, n) in wanted.items()}
    assert store.decisions.get(known.id).outcome.reward == 2.0
    assert store.decisions.count(DecisionFilter(text="100%_")) == 0


def test_old_decisions_are_deleted(store):
    now = dt.datetime.now(dt.UTC)
    ages = {"ancient": 40, "old": 20, "young": 1}
    for name, days in ages.items():
        store.decisions.add([decision(session_id=name).model_copy(update={"time": now - dt.timedelta(days)})])

    def kept() -> list[str]:
        return [record.session_id for record in store.decisions.recent()]

    assert store.decisions.prune() == 0
    assert store.decisions.prune(keep_days=30, keep=5) == 1
    assert kept() == ["young", "old"]
    assert store.decisions.prune(keep_days=30, keep=1) == 1
    assert kept() == ["young"]


def test_a_database_of_an_earlier_version_is_brought_up_to_date(tmp_path):
    url = f"sqlite:///{tmp_path}/store.db"
    old = open_store(url)
    made, _ = old.evaluations.create(SPEC, token="t")
    with old._engine.begin() as db:
        db.execute(text("ALTER TABLE evaluations DROP COLUMN versions"))
    old.close()
    store = open_store(url)
    assert store.evaluations.get(made.id) == made
    store.evaluations.create(SPEC, token="t", versions={"dataset": "1"})
    assert store.evaluations.versions_in_use() == {"1"}
    store.close()


def test_versions_go_forward_and_back(store):
    for version in ("1", "2", "3"):
        store.artifacts.publish("critic", "c", version, f"/{version}", {"n": version})
    assert store.artifacts.get("critic", "c").version == "3"
    assert store.artifacts.rollback("critic", "c").version == "2"
    assert store.artifacts.rollback("critic", "c").version == "1"
    with pytest.raises(PreplayError, match="no earlier version"):
        store.artifacts.rollback("critic", "c")
    store.artifacts.publish("critic", "c", "3", "/3", {})
    assert store.artifacts.get("critic", "c").version == "3"
    assert len(store.artifacts.list("critic", current_only=False)) == 3


def test_tokens(store):
    secret = store.tokens.create("a", frozenset({"read"}))
    assert store.tokens.check(secret).allows("read")
    assert not store.tokens.check(secret).allows("score")
    assert store.tokens.check(secret[:-1] + ("a" if secret[-1] != "a" else "b")) is None
    with pytest.raises(PreplayError, match="already"):
        store.tokens.create("a", frozenset({"read"}))
    with pytest.raises(PreplayError, match="not known"):
        store.tokens.create("b", frozenset({"write"}))
    store.tokens.revoke("a")
    assert store.tokens.check(secret) is None
    assert not store.tokens.any_active()


def test_an_address_that_cannot_be_opened_is_told_without_its_password():
    with pytest.raises(PreplayError) as caught:
        open_store("postgresql+nothing://user:hunter2@db.example.org/x")
    assert "hunter2" not in str(caught.value)
