"""Many raw turns checked at once, column by column; what is not plain is left to the check of single turns.

N turns. A block is plain when every value has its field's own type and lies in its range. Both ways give the same
steps; this one costs a third, and nearly all turns of nearly all logs are plain.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from preplay.logs._check import (
    STEP_SCHEMA,
    FieldError,
    _extras,
    _logprob,
    _order,
    _timestamp,
    text_of,
)
from preplay.logs._check import _count as _whole_number
from preplay.logs._records import RawTurn

Column = list[Any]
_NONE, _FLOAT = type(None), {float, int}


class _NotPlain(ValueError):
    """A value that the check of single turns must look at."""


def check_block(raws: Sequence[RawTurn], file: str, first: int) -> pa.Table | None:
    """Steps (``STEP_SCHEMA``) of N turns with the arrival numbers ``first`` and up; None when not all are plain."""
    try:
        columns = _columns(raws)
        columns["seq"] = pa.array(np.arange(first, first + len(raws)))
        columns["file"] = pa.repeat(file, len(raws))
        return pa.Table.from_arrays([columns[f.name].cast(f.type) for f in STEP_SCHEMA], schema=STEP_SCHEMA)
    except (_NotPlain, FieldError, pa.ArrowInvalid, UnicodeEncodeError, OverflowError, RecursionError):
        return None


def _columns(raws: Sequence[RawTurn]) -> dict[str, pa.Array]:
    values = [raw.values for raw in raws]
    whole = {"state" in v or "next_state" in v for v in values}
    _require(len(whole) == 1)
    state, following = ("state", "next_state") if whole == {True} else ("observation", "next_observation")
    names = set().union(*values)

    def column(name: str) -> Column:
        return [v.get(name) for v in values] if name in names else []

    def filled(name: str, make: Callable[[Column], pa.Array], kind: pa.DataType) -> pa.Array:
        return make(column(name)) if name in names else pa.nulls(len(raws), kind)

    made = {
        "session_id": _session_ids([raw.session_id for raw in raws]),
        "source": pa.array([raw.source for raw in raws]),
        "record_hash": pa.array([raw.record_hash for raw in raws]),
        "policy": pa.array(list(map(_policy, column("policy") or [None] * len(raws)))),
        "state": _texts(column(state)),
        "action": _texts(column("action")),
        "next_state": filled(following, _optional_texts, pa.string()),
        "reward": filled("reward", _numbers, pa.float64()),
        "order": filled("turn", _each(_order, int), pa.int64()),
        "tokens": filled("tokens", _each(_tokens, int), pa.int64()),
        "timestamp": filled("timestamp", _each(_timestamp, None), pa.timestamp("us", tz="UTC")),
        "behavior_logprob": _logprobs(column("behavior_logprob"), column("action_prob"), len(raws)),
        "extras": _all_extras(raws, "extras" in names),
        "whole_state": pa.repeat(whole == {True}, len(raws)),
        "lost": pa.repeat(False, len(raws)),
        "outcome": pa.repeat(False, len(raws)),
    }
    made |= {name: filled(name, _optional_texts, pa.string()) for name in ("task", "proposed_action")}
    made |= {name: filled(name, _flags, pa.bool_()) for name in ("terminated", "truncated")}
    return made | {name: filled(name, _numbers, pa.float64()) for name in ("cost", "latency_s")}


def _require(plain: bool) -> None:
    if not plain:
        raise _NotPlain


def _types(column: Column) -> set[type]:
    return set(map(type, column))


def _session_ids(column: Column) -> pa.Array:
    _require(_types(column) == {str} and all(map(str.strip, column)))
    return pa.array(column)


def _policy(value: Any) -> str:
    return ("" if value is None else text_of(value)) or "logged"


def _texts(column: Column) -> pa.Array:
    _require(bool(column) and _NONE not in _types(column))
    return _optional_texts(column)


def _optional_texts(column: Column) -> pa.Array:
    if not _types(column) <= {str, _NONE}:
        column = [None if value is None else text_of(value) for value in column]
    return pa.array(column, pa.string())


def _numbers(column: Column) -> pa.Array:
    _require(_types(column) <= {float, int, _NONE})
    numbers = np.array([0.0 if value is None else value for value in column], np.float64)
    _require(bool(np.isfinite(numbers).all()))
    return pa.array(column, pa.float64())


def _flags(column: Column) -> pa.Array:
    _require(_types(column) <= {bool, _NONE})
    return pa.array(column, pa.bool_())


def _each(check: Callable[[Any], Any], kind: type | None) -> Callable[[Column], pa.Array]:
    """Values of one type (any, when None), each through the check of single turns."""

    def make(column: Column) -> pa.Array:
        _require(kind is None or _types(column) <= {kind, _NONE})
        found = [check(value) for value in column]
        return pa.array(found, pa.int64() if kind is int else pa.timestamp("us", tz="UTC"))

    return make


def _tokens(value: Any) -> int | None:
    return _whole_number("tokens", value)


def _logprobs(logged: Column, probability: Column, rows: int) -> pa.Array:
    """Logged log-probabilities, or the logarithms of probabilities where only those are there."""
    if not logged and not probability:
        return pa.nulls(rows, pa.float64())
    pairs = zip(logged or [None] * rows, probability or [None] * rows, strict=True)
    return pa.array([_logprob(*pair) for pair in pairs], pa.float64())


def _all_extras(raws: Sequence[RawTurn], given: bool) -> pa.Array:
    if not given and not any(raw.extras for raw in raws):
        return pa.repeat("{}", len(raws))
    notes: Counter[str] = Counter()
    found = [_extras(raw, notes) for raw in raws]
    _require(not notes)
    return pa.array(found)
