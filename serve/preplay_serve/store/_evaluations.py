"""Evaluations in the store: accepted once, claimed by one runner at a time, finished exactly once."""

import json
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import TypeAdapter
from sqlalchemy import Engine, Row, func, insert, or_, select, update
from sqlalchemy.exc import IntegrityError

from preplay_serve.store._records import (
    FINAL,
    EvaluationRecord,
    EvaluationSpec,
    PartialEstimate,
    Progress,
    Status,
    moment,
    new_id,
)
from preplay_serve.store._tables import evaluations as table

_PARTIAL = TypeAdapter(tuple[PartialEstimate, ...])
_COLUMNS = [c for c in table.c if c.name not in ("report", "idempotency_key", "owner", "lease_until")]


class Evaluations:
    """The evaluations of one database."""

    def __init__(self, engine: Engine):
        self._engine = engine

    def create(
        self,
        spec: EvaluationSpec,
        *,
        token: str,
        idempotency_key: str | None = None,
        versions: Mapping[str, str] | None = None,
    ) -> tuple[EvaluationRecord, bool]:
        """Accept an evaluation; on the disk when this returns.

        Args:
            versions: Of the artifacts that it is to use, whatever is published until it starts.

        Returns:
            The evaluation, and whether it is new: the same token and key give the one that is already there.
        """
        values = {
            "id": new_id("ev"), "created": time.time(), "status": "queued", "token": token,
            "idempotency_key": idempotency_key, "spec": spec.model_dump_json(),
            "progress": Progress().model_dump_json(), "partial": "[]", "attempts": 0, "revision": 0,
            "versions": json.dumps(versions or {}),
        }  # fmt: skip
        try:
            with self._engine.begin() as db:
                db.execute(insert(table).values(values))
        except IntegrityError:
            return self._by_key(token, idempotency_key), False
        return self._one(str(values["id"])), True

    def get(self, evaluation_id: str) -> EvaluationRecord | None:
        """One evaluation."""
        with self._engine.connect() as db:
            row = db.execute(select(*_COLUMNS).where(table.c.id == evaluation_id)).first()
        return _record(row) if row else None

    def report_json(self, evaluation_id: str) -> str | None:
        """JSON of the ``preplay.report.EvaluationReport``, once it has succeeded."""
        with self._engine.connect() as db:
            return db.execute(select(table.c.report).where(table.c.id == evaluation_id)).scalar()

    def recent(
        self, *, status: Status | None = None, limit: int = 50, before: str | None = None
    ) -> list[EvaluationRecord]:
        """The newest first; ``before`` is the id that ended the page before this one."""
        query = select(*_COLUMNS).order_by(table.c.id.desc()).limit(limit)
        if status:
            query = query.where(table.c.status == status)
        if before:
            query = query.where(table.c.id < before)
        with self._engine.connect() as db:
            return [_record(row) for row in db.execute(query)]

    def count(self) -> dict[str, int]:
        """Evaluations by status."""
        with self._engine.connect() as db:
            rows = db.execute(select(table.c.status, func.count()).group_by(table.c.status))
            return {status: number for status, number in rows}

    def queued(self, token: str) -> int:
        """How many of a token's evaluations wait."""
        query = select(func.count()).where(table.c.token == token, table.c.status == "queued")
        with self._engine.connect() as db:
            return int(db.execute(query).scalar_one())

    def versions_in_use(self) -> set[str]:
        """Versions of artifacts that unfinished evaluations were accepted with."""
        query = select(table.c.versions).where(table.c.status.not_in(FINAL), table.c.versions.is_not(None))
        with self._engine.connect() as db:
            return {version for text in db.execute(query).scalars() for version in json.loads(text).values()}

    def cancel(self, evaluation_id: str) -> EvaluationRecord | None:
        """Ask for the end of an evaluation: a queued one ends here, a running one when its runner has stopped it."""
        for status, after in (("queued", "cancelled"), ("running", "cancelling")):
            changes: dict[str, Any] = {"status": after}
            if after == "cancelled":
                changes |= {"finished": time.time()}
            self._change(evaluation_id, changes, only=(status,))
        return self.get(evaluation_id)

    def claim(self, owner: str, *, lease_s: float, slots: int) -> EvaluationRecord | None:
        """Take the next evaluation to run, fairly among tokens; one whose owner fell silent comes first.

        Args:
            owner: Who runs it from now on.
            lease_s: For how long without a word from the owner.
            slots: Evaluations that may run at once, whoever owns them.
        """
        now = time.time()
        rows = self._unfinished()
        alive = [r for r in rows if r.status in ("running", "cancelling") and (r.lease_until or 0) >= now]
        lost = [r for r in rows if r.status == "running" and (r.lease_until or 0) < now]
        waiting = lost or _fair([r for r in rows if r.status == "queued"], alive, self._served())
        if len(alive) >= slots:
            return None
        for row in waiting:
            if self._take(row, owner, now, lease_s):
                return self._one(row.id)
        return None

    def keep(self, evaluation_id: str, owner: str, *, lease_s: float) -> Status | None:
        """Tell that the owner lives; the status, or None when the evaluation is no longer the owner's."""
        with self._engine.begin() as db:
            mine = (table.c.id == evaluation_id) & (table.c.owner == owner)
            db.execute(update(table).where(mine).values(lease_until=time.time() + lease_s))
            return db.execute(select(table.c.status).where(mine)).scalar()

    def advance(
        self, evaluation_id: str, owner: str, progress: Progress, partial: Sequence[PartialEstimate]
    ) -> None:
        """Tell how far it is."""
        values = {
            "progress": progress.model_dump_json(),
            "partial": _PARTIAL.dump_json(tuple(partial)).decode(),
        }
        self._change(evaluation_id, values, only=("running",), owner=owner)

    def finish(
        self,
        evaluation_id: str,
        owner: str | None,
        status: Status,
        *,
        report_json: str | None = None,
        error: str | None = None,
    ) -> bool:
        """Write the final state once; False when the evaluation is final already or another's."""
        if status not in FINAL:
            raise ValueError(f"{status!r} is not final")
        values = {
            "status": status, "report": report_json, "error": error,
            "finished": time.time(), "owner": None, "lease_until": None,
        }  # fmt: skip
        return self._change(evaluation_id, values, only=("queued", "running", "cancelling"), owner=owner)

    def release(self, evaluation_id: str, owner: str) -> None:
        """Give a running evaluation back, for another runner to go on with."""
        self._change(evaluation_id, {"lease_until": 0.0}, only=("running",), owner=owner)

    def abandoned(self) -> list[str]:
        """Ids of evaluations to be cancelled whose owner fell silent."""
        now = time.time()
        return [r.id for r in self._unfinished() if r.status == "cancelling" and (r.lease_until or 0) < now]

    def _unfinished(self) -> Sequence[Row]:
        columns = (table.c.id, table.c.status, table.c.token, table.c.created, table.c.lease_until)
        with self._engine.connect() as db:
            query = select(*columns).where(table.c.status.not_in(FINAL)).order_by(table.c.created)
            return db.execute(query).all()

    def _served(self) -> dict[str, float]:
        """When each token's evaluation was last started."""
        with self._engine.connect() as db:
            rows = db.execute(select(table.c.token, func.max(table.c.started)).group_by(table.c.token))
            return {token: started or 0.0 for token, started in rows}

    def _take(self, row: Row, owner: str, now: float, lease_s: float) -> bool:
        free = or_(table.c.status == "queued", table.c.lease_until < now)
        query = (
            update(table)
            .where(table.c.id == row.id, table.c.status == row.status, free)
            .values(
                status="running",
                owner=owner,
                started=func.coalesce(table.c.started, now),
                lease_until=now + lease_s,
                attempts=table.c.attempts + 1,
                revision=table.c.revision + 1,
            )
        )
        with self._engine.begin() as db:
            return db.execute(query).rowcount == 1

    def _change(
        self, evaluation_id: str, values: dict[str, Any], *, only: Sequence[str], owner: str | None = None
    ) -> bool:
        query = update(table).where(table.c.id == evaluation_id, table.c.status.in_(only))
        if owner is not None:
            query = query.where(table.c.owner == owner)
        with self._engine.begin() as db:
            return db.execute(query.values(**values, revision=table.c.revision + 1)).rowcount == 1

    def _by_key(self, token: str, key: str | None) -> EvaluationRecord:
        query = select(*_COLUMNS).where(table.c.token == token, table.c.idempotency_key == key)
        with self._engine.connect() as db:
            return _record(db.execute(query).one())

    def _one(self, evaluation_id: str) -> EvaluationRecord:
        record = self.get(evaluation_id)
        assert record is not None
        return record


def _fair(queued: Sequence[Row], alive: Sequence[Row], served: dict[str, float]) -> list[Row]:
    """Tokens with fewest running first, then those served longest ago, each in the order of arrival."""
    running = Counter(row.token for row in alive)
    return sorted(queued, key=lambda r: (running[r.token], served.get(r.token, 0.0), r.created))


def _record(row: Row) -> EvaluationRecord:
    values = row._asdict()
    for name in ("created", "started", "finished"):
        values[name] = moment(values[name])
    for name in ("spec", "progress", "partial"):
        values[name] = json.loads(values[name])
    values["versions"] = json.loads(values["versions"] or "{}")
    return EvaluationRecord.model_validate(values)
