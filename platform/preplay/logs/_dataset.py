"""The dataset artifact: turns.parquet, quarantine.jsonl and card.json, complete or absent."""

import hashlib
import json
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, cast

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq

from preplay.artifacts import Artifact, open_artifact, write_artifact
from preplay.errors import PreplayError
from preplay.logs._assemble import sort_turns
from preplay.logs._card import DataCard, build_card, data_card
from preplay.logs._outcomes import read_outcomes
from preplay.logs._pipeline import (
    INLINE_BYTES,
    TURNS,
    Options,
    Part,
    assemble_parts,
    read_segments,
    totals,
    write_turns,
)
from preplay.logs._read import choose_readers, nothing_usable
from preplay.logs._records import Quarantined, canonical_json
from preplay.logs._redact import redact_texts
from preplay.logs._schema import SCHEMA_VERSION, TURN_SCHEMA
from preplay.logs._segments import Segment, cut, read_index, write_index
from preplay.logs._spill import QUARANTINE, Summary

KIND = "dataset"
CARD = "card.json"


def ingest(
    paths: Sequence[str],
    output: str,
    *,
    format: str = "auto",
    outcomes: str | None = None,
    outcome_key: str = "session_id",
    redact: bool = False,
    cache: str | None = None,
    parallel: bool | None = None,
    seed: int = 0,
) -> Artifact:
    """Read logs of any size and write them as a dataset artifact.

    Args:
        paths: Files, folders, globs or fsspec URIs; plain, .gz or .zst.
        output: Where the dataset goes: a folder or an fsspec URI.
        format: A reader's name, or ``auto``.
        outcomes: A CSV, Parquet or JSONL file with rewards to join, see :func:`read_outcomes`.
        outcome_key: The field of both sides that names the session (a Turn field or one of extras).
        redact: Mask secrets and e-mail addresses in all texts.
        cache: Folder for what was read so far: the next ingest into the same folder reads only what is new.
            It takes about as much room as the logs compressed.
        parallel: Use Ray (True), this process alone (False), or decide by size (None).
        seed: Chooses the texts whose language is looked at.

    Raises:
        PreplayError: As :func:`read_logs`; an earlier dataset at ``output`` then stays as it is.
    """
    chosen, warnings = choose_readers(paths, format)
    options = Options(outcomes, outcome_key, redact, seed)
    with _folder(cache, output) as folder:
        segments = cut(chosen, read_index(folder))
        size = sum(_size(s) for s in segments)
        use_ray = size > INLINE_BYTES if parallel is None else parallel
        with ThreadPoolExecutor(1) as pool:
            inputs = pool.submit(_hash_inputs, [file.path for file, _ in chosen], segments, outcomes)
            summaries = read_segments(segments, folder, parallel=use_ray)
        formats = {file.path: name for file, name in chosen}
        config = {"formats": formats, "outcome_key": outcome_key, "redact": redact}
        with write_artifact(output, KIND, config=config, inputs=inputs.result(), seed=seed) as staging:
            work = folder / "parts"
            work.mkdir(exist_ok=True)
            parts = assemble_parts(segments, folder, staging.path, work, options, parallel=use_ray)
            _collect(staging.path, folder, work, segments, parts, options)
            card = _card(work, parts, summaries, formats, warnings, staging.path, options)
            (staging.path / CARD).write_text(card.model_dump_json(indent=2))
            staging.metrics |= {
                "sessions": card.sessions,
                "turns": card.turns,
                "quarantined": card.quarantined,
            }
        shutil.rmtree(work)
        _keep(folder, segments)
    return open_artifact(output, KIND)


@contextmanager
def _folder(cache: str | None, output: str) -> Iterator[Path]:
    """The folder of steps: the user's cache, or one beside the output that is removed at the end."""
    if cache:
        Path(cache).mkdir(parents=True, exist_ok=True)
        yield Path(cache).absolute()
        return
    beside = Path(output).absolute().parent if "://" not in output else None
    if beside:
        beside.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".preplay-steps-", dir=beside) as folder:
        yield Path(folder)


def _hash_inputs(paths: Sequence[str], segments: Sequence[Segment], outcomes: str | None) -> dict[str, str]:
    """SHA-256 of every file; one that is a single segment was hashed when it was cut."""
    pieces = Counter(s.path for s in segments)
    known = {s.path: s.sha256 for s in segments if pieces[s.path] == 1}
    return {path: known.get(path) or hash_file(path) for path in [*paths, *([outcomes] if outcomes else [])]}


def _size(segment: Segment) -> int:
    if segment.end is not None:
        return segment.end - segment.start
    fs, root = fsspec.core.url_to_fs(segment.path)
    return int(fs.size(root))


def _collect(
    target: Path,
    folder: Path,
    work: Path,
    segments: Sequence[Segment],
    parts: Sequence[Part],
    options: Options,
) -> None:
    """Join the quarantine of all segments and parts, in their order."""
    sources = [folder / s.key / QUARANTINE for s in segments]
    sources += [work / f"quarantine-{part.number}.jsonl" for part in parts]
    refused = read_outcomes(options.outcomes, options.outcome_key).refused if options.outcomes else []
    with (target / QUARANTINE).open("w", encoding="utf-8") as out:
        out.writelines(canonical_json(q.to_json()) + "\n" for q in refused)
        for source in sources:
            with source.open(encoding="utf-8") as lines:
                out.writelines(_masked(list(lines)) if options.redact else lines)


def _masked(lines: list[str]) -> list[str]:
    return redact_texts(pa.chunked_array([lines], pa.string())).to_pylist()


def _card(
    work: Path,
    parts: Sequence[Part],
    summaries: Sequence[Summary],
    formats: dict[str, str],
    warnings: list[str],
    target: Path,
    options: Options,
) -> DataCard:
    notes, records = totals(parts, summaries)
    with (target / QUARANTINE).open("rb") as lines:
        quarantined = sum(1 for _ in lines)
    if not sum(part.turns for part in parts):
        lost = _read_quarantine(target / QUARANTINE, limit=1000)
        raise nothing_usable(list(formats), lost, warnings, count=quarantined)
    turns = pa.concat_tables([pq.read_table(work / f"turn-stats-{p.number}.parquet") for p in parts])
    sessions = pa.concat_tables([pq.read_table(work / f"session-stats-{p.number}.parquet") for p in parts])
    fates = {kind: records[kind] for kind in ("read", "quarantined", "merged")}
    card = build_card(turns, sessions, quarantined, formats=formats, records=fates, notes=notes)
    card.warnings = warnings + _unmatched(parts, options) + card.warnings
    return card


def _unmatched(parts: Sequence[Part], options: Options) -> list[str]:
    if not options.outcomes:
        return []
    outcomes = read_outcomes(options.outcomes, options.outcome_key)
    keys = set(outcomes.by_session) | {key for key, _ in outcomes.by_turn}
    late = len(keys - {key for part in parts for key in part.used_outcomes})
    return [f"{late} of {len(keys)} outcomes match no session."] if late else []


def _keep(folder: Path, segments: Sequence[Segment]) -> None:
    """Remember the segments and remove those of earlier content."""
    keys = {s.key for s in segments}
    for entry in folder.iterdir():
        if entry.is_dir() and entry.name not in keys:
            shutil.rmtree(entry)
    write_index(folder, segments)


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
    names = sorted(name for name in artifact.manifest.files if name.startswith("turns"))
    tables = [pq.read_table(artifact.file(name)) for name in names]
    for table in tables:
        check_schema(table.schema, str(uri))
    if len(tables) == 1:
        return tables[0]
    return sort_turns(pa.concat_tables(tables))


def load_card(uri: str | Path) -> DataCard:
    """The data card of a dataset artifact."""
    return DataCard.model_validate_json(open_artifact(uri, KIND).file(CARD).read_bytes())


def load_quarantine(uri: str | Path) -> list[Quarantined]:
    """The quarantined records of a dataset artifact."""
    return _read_quarantine(open_artifact(uri, KIND).file(QUARANTINE))


def _read_quarantine(path: Path, limit: int | None = None) -> list[Quarantined]:
    with path.open(encoding="utf-8") as lines:
        return [Quarantined(**json.loads(line)) for line in islice(lines, limit)]


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
