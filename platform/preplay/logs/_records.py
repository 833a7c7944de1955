"""What a reader hands over: raw turns nobody has checked yet, and the records it could not use."""

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import msgspec

_EXCERPT = 200
_encode = json.JSONEncoder(
    ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False, check_circular=False
).encode
_sorted = msgspec.json.Encoder(order="sorted")
_encode_simple, _encode_lines = _sorted.encode, _sorted.encode_lines
_SIMPLE = {str, int, bool, type(None)}


@dataclass(slots=True)
class RawTurn:
    """One logged decision before any check; every value is whatever the log held.

    ``values`` uses the Turn's field names, with three differences: ``turn`` is the logged position in any
    numbering (None: order of arrival); ``state``/``next_state`` may stand in place of
    ``observation``/``next_observation`` and may carry the whole history; ``action_prob`` may stand in
    place of ``behavior_logprob``. Fields that the log does not have are absent.
    """

    session_id: Any
    values: dict[str, Any]
    source: str
    record_hash: str
    extras: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class RawTable:
    """N raw turns of one file, column by column: every list is N long.

    ``values`` holds the fields of ``RawTurn.values``; None where a turn lacks a field that others have.
    """

    session_ids: list[Any]
    values: dict[str, list[Any]]
    sources: list[str]
    hashes: list[str]
    extras: list[dict[str, Any]]

    def __len__(self) -> int:
        return len(self.sources)

    @classmethod
    def of(cls, raws: Sequence[RawTurn]) -> "RawTable | None":
        """The turns as columns; None where some of them hold states and others observations."""
        if len({"state" in raw.values or "next_state" in raw.values for raw in raws}) != 1:
            return None
        names = set().union(*(raw.values for raw in raws))
        return cls(
            [raw.session_id for raw in raws],
            {name: [raw.values.get(name) for raw in raws] for name in names},
            [raw.source for raw in raws],
            [raw.record_hash for raw in raws],
            [raw.extras for raw in raws],
        )

    def turns(self) -> list[RawTurn]:
        """The turns one by one."""
        rows = zip(*self.values.values(), strict=True) if self.values else [()] * len(self)
        return [
            RawTurn(session_id, dict(zip(self.values, row, strict=True)), source, digest, extras)
            for session_id, row, source, digest, extras in zip(
                self.session_ids, rows, self.sources, self.hashes, self.extras, strict=True
            )
        ]


@dataclass(frozen=True, slots=True)
class Quarantined:
    """A record, or a part of one, that was not used, and why."""

    source: str
    field: str
    reason: str
    raw: str = ""

    def to_json(self) -> dict[str, str]:
        """The line of ``quarantine.jsonl``."""
        return {"source": self.source, "field": self.field, "reason": self.reason, "raw": self.raw}


@dataclass(frozen=True, slots=True)
class Outcome:
    """A session's reward that stands in a record of its own (a score, a feedback, a root run)."""

    session_id: Any
    reward: Any
    source: str
    record_hash: str


@dataclass(frozen=True, slots=True)
class Merged:
    """A record that holds no decision of its own and went into other turns (or only names the file)."""

    source: str
    into: str


def excerpt(raw: Any) -> str:
    """The beginning of a raw record, safe to print and to store."""
    if isinstance(raw, bytes):
        text = raw[:_EXCERPT].decode("utf-8", "backslashreplace")
    else:
        text = raw if isinstance(raw, str) else canonical_json(raw)
        text = text[:_EXCERPT].encode("utf-8", "backslashreplace").decode()
    return text


def canonical_json(value: Any) -> str:
    """Compact JSON with sorted keys: equal values give equal text. NaN and infinity become strings."""
    if type(value) is dict and all(map(_SIMPLE.__contains__, map(type, value.values()))):
        try:
            return _encode_simple(value).decode()
        except (TypeError, UnicodeEncodeError):
            pass  # a key that is no text, half a character: for the slower way
    try:
        return _encode(value)
    except (ValueError, TypeError):
        return _encode(_plain(value))


def canonical_jsons(values: Sequence[dict[str, Any]]) -> list[str]:
    """``canonical_json`` of many objects, all at once where they are simple."""
    if _SIMPLE.issuperset(map(type, chain.from_iterable(map(dict.values, values)))):
        try:
            return _encode_lines(values).decode().split("\n")[: len(values)]
        except (TypeError, UnicodeEncodeError):
            pass
    return list(map(canonical_json, values))


def hash_record(raw: Any) -> str:
    """SHA-256 of a raw record: of its bytes where it has them, else of its canonical JSON."""
    data = raw if isinstance(raw, bytes) else canonical_json(raw).encode("utf-8", "surrogatepass")
    return hashlib.sha256(data).hexdigest()


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    if value is None or isinstance(value, str | int | float | bool):
        return value
    return value.isoformat() if hasattr(value, "isoformat") else str(value)
