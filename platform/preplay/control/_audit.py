"""The audit log: every decision and every outcome, appended by any number of processes; nothing is lost in a kill.

Each append is a Parquet file of its own, written aside, flushed and renamed, named by its content. A killed process
leaves no half row; two processes never write the same file. Outcomes come later and are joined by the decision's id.
"""

import contextlib
import datetime as dt
import uuid
from collections.abc import Sequence

import fsspec
import pyarrow as pa

from preplay.control._decision import Decision
from preplay.critics import DecisionState
from preplay.errors import PreplayError
from preplay.shards import ShardFolder

AUDIT_VERSION = "2"
_BEFORE_EVIDENCE = "1"
_TRIES = 20
_VERSION_KEY = b"preplay.audit_version"
DECISION_SCHEMA = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("time", pa.timestamp("us", tz="UTC"), nullable=False),
        pa.field("session_id", pa.string(), nullable=False),
        pa.field("task", pa.string(), nullable=False),
        pa.field("observation", pa.string(), nullable=False),
        pa.field("turn", pa.int32(), nullable=False),
        pa.field("candidates", pa.list_(pa.string()), nullable=False),
        pa.field("scores", pa.list_(pa.float64()), nullable=False),
        pa.field("outcome", pa.string(), nullable=False),
        pa.field("action", pa.string()),
        pa.field("index", pa.int32()),
        pa.field("reasons", pa.list_(pa.string()), nullable=False),
        pa.field("evidence", pa.list_(pa.list_(pa.float64()))),
    ],
    metadata={_VERSION_KEY: AUDIT_VERSION.encode()},
)
OUTCOME_SCHEMA = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("outcome_time", pa.timestamp("us", tz="UTC"), nullable=False),
        pa.field("reward", pa.float64(), nullable=False),
        pa.field("success", pa.bool_()),
    ],
    metadata={_VERSION_KEY: AUDIT_VERSION.encode()},
)


class AuditLog:
    """An audit log in a folder or under any fsspec URI.

    Args:
        uri: Where it lives; made if it is missing.
        session: Name of the session that is being logged; a new one by default.
    """

    def __init__(self, uri: str, session: str | None = None):
        self._folder = ShardFolder(str(uri))
        self._fs, _ = fsspec.core.url_to_fs(str(uri))
        self.session = session or uuid.uuid4().hex

    def append_decisions(
        self, work: Sequence[tuple[DecisionState, Sequence[str]]], decisions: Sequence[Decision]
    ) -> None:
        """Append decisions; they are on the disk when this returns."""
        now = dt.datetime.now(dt.UTC)
        rows = [
            {
                "id": d.id, "time": now, "session_id": self.session, "task": s.task, "observation": s.observation,
                "turn": s.turn, "candidates": list(c), "scores": list(d.scores), "outcome": d.outcome,
                "action": d.action, "index": d.index, "reasons": list(d.reasons), "evidence": d.evidence,
            }
            for (s, c), d in zip(work, decisions, strict=True)
        ]  # fmt: skip
        if rows:
            self._folder.write("decision", pa.Table.from_pylist(rows, schema=DECISION_SCHEMA))

    def append_outcome(self, decision_id: str, reward: float, success: bool | None = None) -> None:
        """Append how a decision went; the latest word counts."""
        row = {
            "id": decision_id,
            "outcome_time": dt.datetime.now(dt.UTC),
            "reward": reward,
            "success": success,
        }
        self._folder.write("outcome", pa.Table.from_pylist([row], schema=OUTCOME_SCHEMA))

    def read(self) -> pa.Table:
        """All decisions in the order of their time, with ``reward`` and ``success`` where they are known."""
        decisions = _once(self._read("decision", DECISION_SCHEMA), "time")
        outcomes = _once(self._read("outcome", OUTCOME_SCHEMA), "outcome_time")
        order = {name: i for i, name in enumerate(outcomes["id"].to_pylist())}
        place = pa.array([order.get(name) for name in decisions["id"].to_pylist()], pa.int64())
        for name in ("reward", "success"):
            decisions = decisions.append_column(name, outcomes[name].take(place))
        return decisions.sort_by([("time", "ascending"), ("turn", "ascending")])

    def compact(self) -> None:
        """Put the many small files into one of each kind; a kill in between repeats rows, which reading undoes."""
        for kind, schema in (("decision", DECISION_SCHEMA), ("outcome", OUTCOME_SCHEMA)):
            paths = self._folder.list().get(kind, [])
            if len(paths) > 1:
                kept = self._folder.write(kind, self._read(kind, schema))
                for path in paths:
                    if path != kept:
                        with contextlib.suppress(FileNotFoundError):  # another process compacts too
                            self._fs.rm_file(path)

    def _read(self, kind: str, schema: pa.Schema) -> pa.Table:
        tables = [self._current(table, schema) for table in self._tables(kind)]
        return pa.concat_tables(tables) if tables else schema.empty_table()

    def _current(self, table: pa.Table, schema: pa.Schema) -> pa.Table:
        """A file in today's schema; decisions of version 1 came without evidence."""
        version = (table.schema.metadata or {}).get(_VERSION_KEY, b"none").decode()
        if version not in (AUDIT_VERSION, _BEFORE_EVIDENCE):
            raise PreplayError(
                f"the audit log has version {version}, this preplay reads {AUDIT_VERSION}.",
                where=self._folder.path,
            )
        missing = [
            pa.nulls(len(table), field.type) for field in schema if field.name not in table.schema.names
        ]
        return pa.table([*table.columns, *missing], schema=schema)

    def _tables(self, kind: str) -> list[pa.Table]:
        """All files of a kind, also while another process compacts them.

        Two listings, because one may miss the compacted file and the files that it replaces; a file that is gone when
        it is read was compacted meanwhile, so everything is read again.
        """
        for _ in range(_TRIES):
            paths = sorted({path for _ in range(2) for path in self._folder.list().get(kind, [])})
            try:
                return [table for path in paths if (table := self._folder.read(path)) is not None]
            except FileNotFoundError:
                continue
        raise PreplayError(
            "files vanish faster than they can be read.",
            where=self._folder.path,
            fix="Compact the audit log less often.",
        )


def _once(table: pa.Table, time: str) -> pa.Table:
    """Each id once, its latest row."""
    ordered = table.sort_by([(time, "descending")])
    seen: set[str] = set()
    keep = [not (name in seen or seen.add(name)) for name in ordered["id"].to_pylist()]
    return ordered.filter(pa.array(keep, pa.bool_()))
