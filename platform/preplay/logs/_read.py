"""Logs in, turns out: choose a reader per file, parse, assemble the sessions."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from preplay.errors import PreplayError
from preplay.logs._assemble import assemble_steps, sort_turns
from preplay.logs._files import BROKEN_STREAM, LogFile, find_files
from preplay.logs._notes import explain
from preplay.logs._parse import parse
from preplay.logs._records import Quarantined
from preplay.logs._registry import Detection, detect, reader

_EMPTY = "the file is empty."


@dataclass(frozen=True)
class ReadResult:
    """What came out of a set of log files.

    ``records`` counts the input records by what became of them (``read``, ``quarantined``, ``merged`` into
    another or repeating it); ``notes`` counts what was accepted only with a remark, ``warnings`` says so.
    """

    turns: pa.Table
    quarantined: list[Quarantined]
    formats: dict[str, str]
    warnings: list[str]
    records: dict[str, int] = field(default_factory=dict)
    notes: dict[str, int] = field(default_factory=dict)


def read_logs(paths: Sequence[str], format: str = "auto") -> ReadResult:
    """Read log files into turns, sorted by session and turn, in memory.

    Args:
        paths: Files, folders, globs or fsspec URIs; plain, .gz or .zst.
        format: A reader's name, or ``auto`` to choose by each file's content.

    Raises:
        PreplayError: When a path does not exist, a named file is of no known format, or nothing was usable.
    """
    chosen, warnings = choose_readers(paths, format)
    parsed = [parse(reader(name), file) for file, name in chosen]
    out = assemble_steps(pa.concat_tables([p.take_steps() for p in parsed]))
    quarantined = [q for p in parsed for q in p.quarantined] + out.quarantined
    notes = sum((p.notes for p in parsed), Counter()) + out.notes
    records = sum((p.records for p in parsed), Counter()) + out.records
    if not out.turns.num_rows:
        raise nothing_usable(paths, quarantined, warnings)
    return ReadResult(
        turns=sort_turns(out.turns),
        quarantined=sorted(quarantined, key=lambda q: q.source),
        formats={file.path: name for file, name in chosen},
        warnings=warnings + explain(notes, len(quarantined)),
        records={kind: records[kind] for kind in ("read", "quarantined", "merged")},
        notes={name: count for name, count in notes.items() if count},
    )


def choose_readers(paths: Sequence[str], format: str) -> tuple[list[tuple[LogFile, str]], list[str]]:
    """The reader's name per file; files found in folders that are no logs are skipped with a warning."""
    files, named = find_files(paths)
    if format != "auto":
        reader(format)
        return [(file, format) for file in files], []
    chosen: list[tuple[LogFile, str]] = []
    skipped: list[tuple[LogFile, str]] = []
    for file in files:
        found = _detect(file)
        if isinstance(found, str):
            skipped.append((file, found))
        else:
            chosen.append((file, found.format or ""))
    refused = [(f, why) for f, why in skipped if f.path in named and why != _EMPTY]
    if refused or not chosen:
        file, why = (refused or skipped)[0]
        raise PreplayError(
            why,
            where=file.path,
            fix="Name the format (--format; `preplay formats` lists them with examples) or convert the file.",
        )
    return chosen, [f"skipped {f.path}: {why.split(' Tried:')[0]}" for f, why in skipped]


def _detect(file: LogFile) -> Detection | str:
    """The file's format, or why it has none."""
    try:
        if not file.head().strip():
            return _EMPTY
        found = detect(file)
    except BROKEN_STREAM as error:
        return f"the file cannot be read ({error or type(error).__name__})."
    return found if found.format else f"no reader knows this format. Tried: {found.tried()}."


def nothing_usable(
    paths: Sequence[str], quarantined: list[Quarantined], warnings: list[str], count: int | None = None
) -> PreplayError:
    """The error for logs of which no turn could be used, with the most frequent reasons."""
    reasons = Counter(f"{q.field}: {q.reason}" for q in quarantined).most_common(3)
    shown = "; ".join(f"{count} x {reason}" for reason, count in reasons) or "; ".join(warnings)
    first = f" The first is {quarantined[0].source}." if quarantined else ""
    return PreplayError(
        f"no usable turn: {count or len(quarantined)} records were quarantined ({shown}).{first}",
        where=", ".join(map(str, paths)),
        fix="Mend the fields named above, or choose another --format.",
    )
