"""Artifacts by name and version: which one is in service, what stood there before, and the way back."""

import json
import time
from typing import Any, Literal

from pydantic import AwareDatetime, Field
from sqlalchemy import Connection, Engine, Row, insert, select, update

from preplay.errors import PreplayError
from preplay_serve.store._records import Record, moment
from preplay_serve.store._tables import artifacts as table

ArtifactKind = Literal["critic", "world_models", "clone", "dataset"]


class ArtifactRecord(Record):
    """One version of an artifact. The path stays on the server."""

    kind: ArtifactKind
    name: str
    version: str
    """Content hash."""
    path: str
    published: AwareDatetime
    current: bool
    details: dict[str, Any] = Field(default_factory=dict)
    """For people: encoder, algorithm, metrics, rows, ..."""


class Artifacts:
    """The registry of one database."""

    def __init__(self, engine: Engine):
        self._engine = engine

    def list(self, kind: ArtifactKind, *, current_only: bool = True) -> list[ArtifactRecord]:
        """By name; versions of a name from the newest."""
        query = select(table).where(table.c.kind == kind).order_by(table.c.name, table.c.published.desc())
        if current_only:
            query = query.where(table.c.current)
        with self._engine.connect() as db:
            return [_record(row) for row in db.execute(query)]

    def get(self, kind: ArtifactKind, name: str, version: str | None = None) -> ArtifactRecord | None:
        """The version in service, or another one that ever was."""
        wanted = table.c.current if version is None else table.c.version == version
        query = select(table).where(table.c.kind == kind, table.c.name == name, wanted)
        with self._engine.connect() as db:
            row = db.execute(query).first()
        return _record(row) if row else None

    def known(self, kind: ArtifactKind, name: str, version: str) -> bool:
        """Whether this version was ever published."""
        key = (table.c.kind == kind) & (table.c.name == name) & (table.c.version == version)
        with self._engine.connect() as db:
            return db.execute(select(table.c.version).where(key)).first() is not None

    def publish(
        self, kind: ArtifactKind, name: str, version: str, path: str, details: dict[str, Any]
    ) -> None:
        """Put a checked version into service, in one transaction; the one before stays for :meth:`rollback`."""
        key = {"kind": kind, "name": name, "version": version}
        values = {"path": path, "published": time.time(), "details": json.dumps(details)}
        with self._engine.begin() as db:
            _withdraw(db, kind, name)
            changed = db.execute(update(table).filter_by(**key).values(**values, current=True)).rowcount
            if not changed:
                db.execute(insert(table).values(**key, **values, current=True))

    def rollback(self, kind: ArtifactKind, name: str) -> ArtifactRecord:
        """Put the version before the current one into service.

        Raises:
            PreplayError: When there is none.
        """
        with self._engine.begin() as db:
            query = select(table).filter_by(kind=kind, name=name).order_by(table.c.published.desc())
            rows = db.execute(query).all()
            place = next((i for i, row in enumerate(rows) if row.current), len(rows))
            if place + 1 >= len(rows):
                raise PreplayError(f"there is no earlier version of {kind} {name!r}.")
            earlier = rows[place + 1]
            _withdraw(db, kind, name)
            db.execute(
                update(table).filter_by(kind=kind, name=name, version=earlier.version).values(current=True)
            )
        found = self.get(kind, name)
        assert found is not None
        return found

    def withdraw(self, kind: ArtifactKind, name: str) -> None:
        """Take a name out of service."""
        with self._engine.begin() as db:
            _withdraw(db, kind, name)


def _withdraw(db: Connection, kind: ArtifactKind, name: str) -> None:
    db.execute(update(table).where(table.c.kind == kind, table.c.name == name).values(current=False))


def _record(row: Row) -> ArtifactRecord:
    values = row._asdict()
    values["published"] = moment(values["published"])
    values["details"] = json.loads(values["details"])
    return ArtifactRecord.model_validate(values)
