"""Writes the table of formats: ``python -m preplay.logs.formats_doc docs/formats.md --data FOLDER``.

Everything in it comes from the readers themselves and from reading their examples and the log sets in FOLDER.
"""

import argparse
import tempfile
from collections.abc import Iterator
from pathlib import Path

from preplay.errors import PreplayError
from preplay.logs._read import ReadResult, read_logs
from preplay.logs._registry import Reader, readers

_SUFFIX = {"swe-agent": ".traj", "turns-csv": ".csv", "balrog-csv": ".csv"}
_INTRO = """# Formats

Made by `python -m preplay.logs.formats_doc docs/formats.md --data FOLDER`; do not edit by hand.

`preplay ingest PATH... --format auto` chooses the format by each file's content; `--format NAME` forces one.
Paths are files, folders, globs or fsspec URIs, plain, `.gz` or `.zst`. How sessions are cut, sorted and aligned
is written in `preplay/logs/_sessions.py`, how conversations become turns in `preplay/logs/_messages.py`.
A third party adds a format by the entry point `preplay.readers` (see `preplay/logs/_registry.py`).
"""


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("output", type=Path)
    parser.add_argument("--data", type=Path, default=None, help="folder with one folder per set of real logs")
    arguments = parser.parse_args()
    arguments.output.write_text(render(arguments.data), encoding="utf-8")


def render(data: Path | None) -> str:
    """The page as Markdown."""
    parts = [
        _INTRO,
        "## What is read\n",
        *_formats(),
        "\n## Examples\n",
        *_examples(),
        "\n## Sets of real logs\n",
    ]
    parts += _sets(data) if data else ["Not read here (no --data FOLDER given).\n"]
    return "\n".join(parts) + "\n"


def _formats() -> Iterator[str]:
    yield from _table("Format", "What it is", "Fields read", "Quirks handled")
    for name, reader in readers().items():
        yield _row(f"`{name}`", reader.description, reader.fields, reader.quirks)


def _examples() -> Iterator[str]:
    """Each reader's own example, detected and read."""
    yield from _table("Format", "Detected as", "Sessions", "Turns", "Quarantined")
    for name, reader in readers().items():
        result = _read_example(name, reader)
        if result is not None:
            yield _row(f"`{name}`", f"`{next(iter(result.formats.values()))}`", *_counts(result))


def _read_example(name: str, reader: Reader) -> ReadResult | None:
    """None for binary formats, whose example is a description."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"example{_SUFFIX.get(name, '.json')}"
        path.write_text(reader.example, encoding="utf-8")
        try:
            return read_logs([str(path)])
        except PreplayError:
            return None


def _sets(data: Path) -> Iterator[str]:
    yield from _table("Set", "Formats", "Sessions", "Turns", "Quarantined")
    for folder in sorted(p for p in data.iterdir() if p.is_dir()):
        try:
            result = read_logs([str(folder)])
        except PreplayError as error:
            yield _row(folder.name, error.what, "–", "–", "–")
            continue
        formats = ", ".join(f"`{name}`" for name in sorted(set(result.formats.values())))
        yield _row(folder.name, formats, *_counts(result))


def _counts(result: ReadResult) -> tuple[str, str, str]:
    sessions = len(result.turns["session_id"].unique())
    return f"{sessions:,}", f"{result.turns.num_rows:,}", f"{len(result.quarantined):,}"


def _table(*names: str) -> list[str]:
    return [_row(*names), "|" + "---|" * len(names)]


def _row(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


if __name__ == "__main__":
    main()
