"""Decisions of the scoring endpoint and what came of them: the decision log, and the flywheel's food."""

import json
import re
import time
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, BaseModel, BeforeValidator, Field
from sqlalchemy import Engine, Row, Select, delete, func, insert, select, update

from preplay_serve.store._records import Record, moment
from preplay_serve.store._tables import decisions as table

_DAY = re.compile(r"\d{4}-\d\d-\d\d")
Kind = Literal["act", "fallback", "review"]


class OutcomeRecord(Record):
    """How a decision went."""

    reward: float = Field(allow_inf_nan=False)
    success: bool | None = None
    time: AwareDatetime | None = None


class DecisionContent(Record):
    """What was decided on. Texts are empty where the server is told not to keep them."""

    task: str
    observation: str
    turn: int
    candidates: tuple[str, ...]
    scores: tuple[float | None, ...]
    """None where a candidate was blocked or could not be scored."""
    action: str | None
    index: int | None
    confidence: float | None
    reasons: tuple[str, ...]
    evidence: tuple[tuple[float, ...], ...] | None = None


class DecisionRecord(Record):
    """One decision."""

    id: str
    time: AwareDatetime
    model: str
    version: str
    decision: Kind
    token: str
    session_id: str
    content: DecisionContent
    outcome: OutcomeRecord | None = None


def _dated(value: Any) -> Any:
    """Refuse bare numbers, which would be taken for seconds since 1970."""
    if isinstance(value, str) and not _DAY.match(value):
        raise ValueError("a time is written as 2026-05-31T12:00:00Z")
    return value


Moment = Annotated[AwareDatetime, BeforeValidator(_dated)]


class DecisionFilter(BaseModel):
    """Which decisions to list; None does not filter."""

    model: str | None = None
    decision: Kind | None = None
    session_id: str | None = None
    has_outcome: bool | None = None
    since: Moment | None = None
    until: Moment | None = None
    text: str | None = Field(
        default=None, description="Contained in task, observation, candidates or reasons."
    )


class Decisions:
    """The decisions of one database."""

    def __init__(self, engine: Engine):
        self._engine = engine

    def add(self, records: Sequence[DecisionRecord]) -> None:
        """Append decisions in one transaction."""
        rows = [
            {
                "id": r.id, "time": r.time.timestamp(), "model": r.model, "version": r.version,
                "decision": r.decision, "token": r.token, "session_id": r.session_id,
                "content": r.content.model_dump_json(),
            }
            for r in records
        ]  # fmt: skip
        with self._engine.begin() as db:
            db.execute(insert(table), rows)

    def get(self, decision_id: str) -> DecisionRecord | None:
        """One decision."""
        with self._engine.connect() as db:
            row = db.execute(select(table).where(table.c.id == decision_id)).first()
        return _record(row) if row else None

    def recent(
        self, where: DecisionFilter | None = None, *, limit: int = 50, offset: int = 0
    ) -> list[DecisionRecord]:
        """The newest first."""
        query = _filtered(select(table), where or DecisionFilter())
        query = query.order_by(table.c.time.desc(), table.c.id).limit(limit).offset(offset)
        with self._engine.connect() as db:
            return [_record(row) for row in db.execute(query)]

    def count(self, where: DecisionFilter | None = None) -> int:
        """How many there are."""
        query = _filtered(select(func.count()).select_from(table), where or DecisionFilter())
        with self._engine.connect() as db:
            return int(db.execute(query).scalar_one())

    def all(self) -> Iterator[DecisionRecord]:
        """Every decision in the order of time, for exports."""
        with self._engine.connect() as db:
            for row in db.execution_options(yield_per=500).execute(select(table).order_by(table.c.time)):
                yield _record(row)

    def prune(self, *, keep_days: float | None = None, keep: int | None = None) -> int:
        """Delete decisions that are older than so many days, and the oldest beyond so many; returns how many."""
        limits = [] if keep_days is None else [time.time() - keep_days * 86_400]
        if keep is not None:
            newest = select(table.c.time).order_by(table.c.time.desc()).limit(1).offset(keep)
            with self._engine.connect() as db:
                limits += db.execute(newest).scalars()
        if not limits:
            return 0
        with self._engine.begin() as db:
            return db.execute(delete(table).where(table.c.time <= max(limits))).rowcount

    def record_outcome(self, decision_id: str, outcome: OutcomeRecord) -> bool:
        """Join an outcome; the latest word counts. False when there is no such decision."""
        when = outcome.time.timestamp() if outcome.time else time.time()
        values = {"reward": outcome.reward, "success": outcome.success, "outcome_time": when}
        with self._engine.begin() as db:
            return db.execute(update(table).where(table.c.id == decision_id).values(values)).rowcount == 1


def _filtered(query: Select, where: DecisionFilter) -> Select:
    for name in ("model", "decision", "session_id"):
        if (value := getattr(where, name)) is not None:
            query = query.where(table.c[name] == value)
    if where.has_outcome is not None:
        known = table.c.reward.is_not(None)
        query = query.where(known if where.has_outcome else ~known)
    if where.since:
        query = query.where(table.c.time >= where.since.timestamp())
    if where.until:
        query = query.where(table.c.time < where.until.timestamp())
    if where.text:
        query = query.where(table.c.content.icontains(_as_stored(where.text), autoescape=True))
    return query


def _as_stored(text: str) -> str:
    """The text as it stands inside a JSON string."""
    return json.dumps(text, ensure_ascii=False)[1:-1]


def _record(row: Row) -> DecisionRecord:
    outcome = None
    if row.reward is not None:
        outcome = OutcomeRecord(reward=row.reward, success=row.success, time=moment(row.outcome_time))
    when = moment(row.time)
    assert when is not None
    return DecisionRecord(
        id=row.id,
        time=when,
        model=row.model,
        version=row.version,
        decision=row.decision,
        token=row.token,
        session_id=row.session_id,
        content=DecisionContent.model_validate_json(row.content),
        outcome=outcome,
    )
