"""The tables. Times are seconds since 1970 (UTC); structured values are JSON text, checked when read."""

from sqlalchemy import Boolean, Column, Float, Index, Integer, MetaData, String, Table, Text, UniqueConstraint

metadata = MetaData()

evaluations = Table(
    "evaluations",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("created", Float, nullable=False),
    Column("started", Float),
    Column("finished", Float),
    Column("status", String(16), nullable=False),
    Column("token", String(80), nullable=False),
    Column("idempotency_key", String(128)),
    Column("spec", Text, nullable=False),
    Column("progress", Text, nullable=False),
    Column("partial", Text, nullable=False),
    Column("report", Text),
    Column("error", Text),
    Column("attempts", Integer, nullable=False),
    Column("revision", Integer, nullable=False),
    Column("owner", String(40)),
    Column("lease_until", Float),
    Column("versions", Text),
    UniqueConstraint("token", "idempotency_key"),
    Index("evaluations_by_status", "status", "created"),
)

decisions = Table(
    "decisions",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("time", Float, nullable=False),
    Column("model", String(128), nullable=False),
    Column("version", String(64), nullable=False),
    Column("decision", String(16), nullable=False),
    Column("token", String(80), nullable=False),
    Column("session_id", String(128), nullable=False),
    Column("reward", Float),
    Column("success", Boolean),
    Column("outcome_time", Float),
    Column("content", Text, nullable=False),
    Index("decisions_by_time", "time"),
    Index("decisions_by_kind", "model", "decision", "time"),
)

artifacts = Table(
    "artifacts",
    metadata,
    Column("kind", String(16), primary_key=True),
    Column("name", String(128), primary_key=True),
    Column("version", String(64), primary_key=True),
    Column("path", Text, nullable=False),
    Column("published", Float, nullable=False),
    Column("current", Boolean, nullable=False),
    Column("details", Text, nullable=False),
)

tokens = Table(
    "tokens",
    metadata,
    Column("id", String(16), primary_key=True),
    Column("name", String(80), nullable=False, unique=True),
    Column("secret_sha256", String(64), nullable=False),
    Column("scopes", String(80), nullable=False),
    Column("created", Float, nullable=False),
    Column("revoked", Float),
)
