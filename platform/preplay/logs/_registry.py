"""The readers: one decorator registers them, an entry point adds a third party's, the head of a file chooses.

A third party ships a class that satisfies :class:`Reader` and names it in its ``pyproject.toml``::

    [project.entry-points."preplay.readers"]
    my-format = "my_package.module:MyReader"
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from pkgutil import iter_modules
from typing import NamedTuple, Protocol, TypeVar, runtime_checkable

from preplay.errors import PreplayError
from preplay.logs._files import LogFile
from preplay.logs._records import Merged, Outcome, Quarantined, RawTable, RawTurn

ENTRY_POINT_GROUP = "preplay.readers"


class Sniff(NamedTuple):
    """How sure a reader is (0 no, 1 certain) that a file is its own, and why."""

    score: float
    why: str


Item = RawTurn | Outcome | Quarantined | Merged


@runtime_checkable
class Reader(Protocol):
    """Turns files of one format into raw turns.

    ``read`` yields at least one item for every record of the file: the record's turns, or one
    ``Quarantined``, or one ``Merged``; it never raises for what a record holds. ``splittable`` readers
    treat each line on its own, so that a large file can be cut into ranges of lines.
    """

    name: str
    description: str
    example: str
    """A minimal record, as text."""
    fields: str
    """The fields that are read, for the table of formats."""
    quirks: str
    """What the reader copes with, for the table of formats."""
    splittable: bool

    def sniff(self, path: str, head: bytes) -> Sniff:
        """How sure the reader is, from the path and the decompressed head of a file."""
        ...

    def read(self, file: LogFile) -> Iterator[Item]:
        """The items of a file, in the file's order."""
        ...


@runtime_checkable
class BlockReader(Reader, Protocol):
    """A reader of flat lines that can also hand over many turns at once, which is several times as fast."""

    def read_blocks(self, file: LogFile) -> Iterator[Item | RawTable]:
        """What ``read`` gives, with the turns of plain lines as tables."""
        ...


_READERS: dict[str, Reader] = {}
R = TypeVar("R")


def register(cls: type[R]) -> type[R]:
    """Class decorator: make a reader known under its name."""
    reader = cls()
    if not isinstance(reader, Reader):
        raise PreplayError(f"{cls.__name__} does not satisfy the Reader protocol.")
    if reader.name in _READERS:
        raise PreplayError(f"two readers are named {reader.name!r}.")
    _READERS[reader.name] = reader
    return cls


@cache
def _load() -> None:
    package = import_module("preplay.logs.readers")
    for module in iter_modules(package.__path__):
        import_module(f"{package.__name__}.{module.name}")
    for entry in entry_points(group=ENTRY_POINT_GROUP):
        if entry.name not in _READERS:
            made: Callable[[], Reader] = entry.load()
            _READERS.setdefault(entry.name, made())


def readers() -> dict[str, Reader]:
    """All readers by name, those of installed third parties included."""
    _load()
    return dict(sorted(_READERS.items()))


def reader(name: str) -> Reader:
    """The reader of a format.

    Raises:
        PreplayError: When there is none of this name.
    """
    known = readers()
    if name not in known:
        raise PreplayError(f"unknown format {name!r}.", fix=f"Known formats: auto, {', '.join(known)}.")
    return known[name]


@dataclass(frozen=True)
class Detection:
    """The chosen format of a file (None: no reader took it) and every reader's answer."""

    format: str | None
    answers: dict[str, Sniff]

    def tried(self) -> str:
        """Every format that was tried, with the reason why the file is not of this format."""
        return "; ".join(f"{name}: {answer.why}" for name, answer in self.answers.items())


def detect(file: LogFile) -> Detection:
    """Ask every reader about a file; the surest takes it."""
    head = file.head()
    answers = {name: r.sniff(file.path, head) for name, r in readers().items()}
    name, best = max(answers.items(), key=lambda item: item[1].score)
    return Detection(name if best.score > 0 else None, answers)
