"""One database with everything: an SQLite file by default, PostgreSQL by URL."""

from pathlib import Path
from typing import Any

from sqlalchemy import Engine, create_engine, event, inspect, text
from sqlalchemy.exc import ArgumentError, OperationalError, ProgrammingError

from preplay.errors import PreplayError
from preplay_serve.store._artifacts import Artifacts
from preplay_serve.store._decisions import Decisions
from preplay_serve.store._evaluations import Evaluations
from preplay_serve.store._tables import metadata
from preplay_serve.store._tokens import Tokens

_BUSY_MS = 10_000


class Store:
    """Everything the server keeps; safe to use from many threads and processes."""

    def __init__(self, engine: Engine):
        self._engine = engine
        self.evaluations = Evaluations(engine)
        self.decisions = Decisions(engine)
        self.artifacts = Artifacts(engine)
        self.tokens = Tokens(engine)

    def ping(self) -> None:
        """Raise unless the database answers."""
        with self._engine.connect() as db:
            db.execute(text("select 1"))

    def close(self) -> None:
        """Close all connections."""
        self._engine.dispose()


def open_store(url: str) -> Store:
    """Open the database at an SQLAlchemy URL (``sqlite:///file.db``, ``postgresql+psycopg://...``); make its tables.

    Raises:
        PreplayError: When it cannot be opened; the message does not repeat the URL's password.
    """
    try:
        engine = create_engine(url, pool_pre_ping=not url.startswith("sqlite"))
        if engine.dialect.name == "sqlite":
            _prepare_sqlite(engine)
        metadata.create_all(engine)
        _add_new_columns(engine)
    except (ArgumentError, ModuleNotFoundError, OperationalError, ProgrammingError) as error:
        raise PreplayError(
            f"the database cannot be opened ({type(error).__name__}).",
            where=url.rpartition("@")[2],
            fix="Give an SQLAlchemy URL, for example sqlite:///runs/serve/preplay.db.",
        ) from error
    return Store(engine)


def _add_new_columns(engine: Engine) -> None:
    """Bring tables of an earlier version up to date; new columns are nullable."""
    found = inspect(engine)
    for table in metadata.tables.values():
        there = {column["name"] for column in found.get_columns(table.name)}
        for column in (c for c in table.columns if c.name not in there):
            kind = column.type.compile(engine.dialect)
            with engine.begin() as db:
                db.execute(text(f"ALTER TABLE {table.name} ADD COLUMN {column.name} {kind}"))


def _prepare_sqlite(engine: Engine) -> None:
    """Readers beside one writer, who waits for its turn; a killed process leaves a sound file."""
    if engine.url.database:
        Path(engine.url.database).parent.mkdir(parents=True, exist_ok=True)

    @event.listens_for(engine, "connect")
    def _configure(connection: Any, _record: Any) -> None:
        for pragma in ("journal_mode=WAL", "synchronous=NORMAL", f"busy_timeout={_BUSY_MS}"):
            connection.execute(f"PRAGMA {pragma}")
