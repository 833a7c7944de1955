"""What the readers of JSON formats share: safe access to untyped values, and one way to treat records."""

from collections.abc import Callable, Iterator
from typing import Any

from preplay.logs._files import LogFile
from preplay.logs._json_stream import JsonRecord, json_records, peek_head
from preplay.logs._records import Quarantined, excerpt
from preplay.logs._registry import Item, Sniff

Convert = Callable[[JsonRecord, str], Iterator[Item] | list[Item]]


def read_json_records(file: LogFile, convert: Convert, field: str) -> Iterator[Item]:
    """Convert each record whole: its items, or, where ``convert`` raises ValueError, one quarantined entry."""
    for record in json_records(file):
        if isinstance(record, Quarantined):
            yield record
            continue
        source = file.where(record.line)
        try:
            items = list(convert(record, source))
        except ValueError as error:
            yield Quarantined(source, field, str(error), excerpt(record.raw))
            continue
        yield from items


def sniff_record(head: bytes, fits: Callable[[dict[str, Any]], bool], score: float, what: str) -> Sniff:
    """Whether the first record of a JSON file fits."""
    peek = peek_head(head)
    if peek.kind in ("text", "binary"):
        return Sniff(0, f"no JSON ({peek.kind})")
    if not isinstance(peek.first, dict):
        return Sniff(0, "the first record is no readable object")
    return Sniff(score, what) if fits(peek.first) else Sniff(0, f"the first record has no {what}")


def as_dict(value: Any, what: str) -> dict[str, Any]:
    """The value if it is an object, else ValueError."""
    if not isinstance(value, dict):
        raise ValueError(f"{what} is {_kind(value)}, not an object")
    return value


def as_list(value: Any, what: str) -> list[Any]:
    """The value if it is a list, else ValueError."""
    if not isinstance(value, list):
        raise ValueError(f"{what} is {_kind(value)}, not a list")
    return value


def dict_or_empty(value: Any) -> dict[str, Any]:
    """The value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def list_or_empty(value: Any) -> list[Any]:
    """The value if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def text_or_none(value: Any) -> str | None:
    """The value if it is text, else None."""
    return value if isinstance(value, str) else None


def without(record: dict[str, Any], *names: str) -> dict[str, Any]:
    """The record's other fields that hold anything."""
    return {k: v for k, v in record.items() if k not in names and v not in (None, [], {})}


def take(record: dict[str, Any], names: tuple[str, ...]) -> Any:
    """Remove and return the first of several fields that is there."""
    return next((record.pop(name) for name in names if record.get(name) is not None), None)


def _kind(value: Any) -> str:
    return "missing" if value is None else f"a {type(value).__name__}"
