"""The dataset artifact: turns.parquet, quarantine.jsonl and card.json, complete or absent."""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq

from preplay.artifacts import Artifact, open_artifact, write_artifact
from preplay.errors import PreplayError
from preplay.logs._card import DataCard, data_card
from preplay.logs._read import read_logs
from preplay.logs._records import Quarantined, canonical_json
from preplay.logs._schema import SCHEMA_VERSION, TURN_SCHEMA

KIND = "dataset"
TURNS, QUARANTINE, CARD = "turns.parquet", "quarantine.jsonl", "card.json"


def ingest(paths: Sequence[str], output: str, *, format: str = "auto") -> Artifact:
    """Read logs and write them as a dataset artifact."""
    result = read_logs(paths, format)
    card = data_card(
        result.turns,
        len(result.quarantined),
        formats=result.formats,
        records=result.records,
        notes=result.notes,
    )
    card.warnings = result.warnings + [w for w in card.warnings if w not in result.warnings]
    inputs = {path: hash_file(path) for path in result.formats}
    with write_artifact(output, KIND, config={"formats": result.formats}, inputs=inputs) as staging:
        write_turns(result.turns, staging.path / TURNS)
        write_quarantine(result.quarantined, staging.path / QUARANTINE)
        (staging.path / CARD).write_text(card.model_dump_json(indent=2))
        staging.metrics |= {"sessions": card.sessions, "turns": card.turns, "quarantined": card.quarantined}
    return open_artifact(output, KIND)


def write_dataset(
    turns: pa.Table, output: str, *, config: dict[str, Any], seed: int | None = None
) -> Artifact:
    """Write turns that are already in the Turn schema (an environment's own) as a dataset artifact."""
    check_schema(turns.schema, "turns")
    card = data_card(turns)
    with write_artifact(output, KIND, config=config, seed=seed) as staging:
        write_turns(turns, staging.path / TURNS)
        write_quarantine([], staging.path / QUARANTINE)
        (staging.path / CARD).write_text(card.model_dump_json(indent=2))
        staging.metrics |= {"sessions": card.sessions, "turns": card.turns, "quarantined": 0}
    return open_artifact(output, KIND)


def load_turns(uri: str | Path) -> pa.Table:
    """The turns of a dataset artifact, checked against its manifest and the Turn schema."""
    artifact = open_artifact(uri, KIND)
    table = pq.read_table(artifact.file(TURNS))
    check_schema(table.schema, str(uri))
    return table


def load_card(uri: str | Path) -> DataCard:
    """The data card of a dataset artifact."""
    return DataCard.model_validate_json(open_artifact(uri, KIND).file(CARD).read_bytes())


def load_quarantine(uri: str | Path) -> list[Quarantined]:
    """The quarantined records of a dataset artifact."""
    lines = open_artifact(uri, KIND).file(QUARANTINE).read_text().splitlines()
    return [Quarantined(**json.loads(line)) for line in lines]


def check_schema(schema: pa.Schema, where: str) -> None:
    """Refuse turns of another schema version or with other fields."""
    version = (schema.metadata or {}).get(b"preplay.schema_version", b"none").decode()
    if version != SCHEMA_VERSION:
        raise PreplayError(
            f"the turns have schema version {version}, this preplay reads {SCHEMA_VERSION}.",
            where=where,
            fix="Ingest the logs again with this version.",
        )
    if not schema.equals(TURN_SCHEMA):
        raise PreplayError("the turns do not have the fields of the Turn schema.", where=where)


def write_turns(turns: pa.Table, path: Path) -> None:
    """Write turns as compressed Parquet in row groups that a laptop can hold."""
    pq.write_table(turns, path, compression="zstd", row_group_size=1 << 15)


def write_quarantine(quarantined: Sequence[Quarantined], path: Path) -> None:
    """One JSON object per line: source, field, reason, raw."""
    path.write_text("".join(canonical_json(q.to_json()) + "\n" for q in quarantined), encoding="utf-8")


def hash_file(path: str) -> str:
    """SHA-256 of a file anywhere, as stored (compressed files are hashed compressed)."""
    digest = hashlib.sha256()
    with cast(Any, fsspec.open(path, "rb")) as stream:
        while chunk := stream.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()


def export_jsonl(turns: pa.Table, path: str | Path) -> None:
    """Write turns as JSON lines that :func:`read_logs` reads back as the same turns."""
    with Path(path).open("w", encoding="utf-8") as stream:
        for batch in turns.to_batches(max_chunksize=1 << 12):
            for turn in batch.to_pylist():
                time = turn["timestamp"]
                stream.write(canonical_json(turn | {"timestamp": time and time.isoformat()}) + "\n")
