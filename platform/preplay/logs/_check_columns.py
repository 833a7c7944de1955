"""Many raw turns checked at once, column by column; what is not plain is left to the check of single turns.

N turns. A block is plain when every value has its field's own type and lies in its range. Both ways give the same
steps; this one costs a third, and nearly all turns of nearly all logs are plain.
"""

import math
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from preplay.logs._check import (
    STEP_SCHEMA,
    FieldError,
    _extras,
    _logprob,
    _timestamp,
    text_of,
)
from preplay.logs._records import RawTable, canonical_jsons

Column = list[Any]
_NONE, _TIME = type(None), pa.timestamp("us", tz="UTC")


class _NotPlain(ValueError):
    """A value that the check of single turns must look at."""


def check_block(raws: RawTable, file: str, first: int) -> pa.Table | None:
    """Steps (``STEP_SCHEMA``) of N turns with the arrival numbers ``first`` and up; None when not all are plain."""
    try:
        columns = _columns(raws)
        columns["seq"] = pa.array(np.arange(first, first + len(raws)))
        columns["file"] = pa.repeat(file, len(raws))
        return pa.Table.from_arrays([columns[f.name] for f in STEP_SCHEMA], schema=STEP_SCHEMA)
    except (_NotPlain, FieldError, pa.ArrowInvalid, UnicodeEncodeError, OverflowError, RecursionError):
        return None


def _columns(raws: RawTable) -> dict[str, pa.Array]:
    values = raws.values
    whole = "state" in values or "next_state" in values
    state, following = ("state", "next_state") if whole else ("observation", "next_observation")

    def filled(name: str, make: Callable[[Column], pa.Array], kind: pa.DataType) -> pa.Array:
        return make(values[name]) if name in values else pa.nulls(len(raws), kind)

    made = {
        "session_id": _session_ids(raws.session_ids),
        "source": pa.array(raws.sources, pa.string()),
        "record_hash": pa.array(raws.hashes, pa.string()),
        "policy": _policies(values["policy"]) if "policy" in values else pa.repeat("logged", len(raws)),
        "state": _texts(values.get(state, [])),
        "action": _texts(values.get("action", [])),
        "next_state": filled(following, _optional_texts, pa.string()),
        "reward": filled("reward", _numbers, pa.float64()),
        "order": filled("turn", _whole_numbers(2**31), pa.int64()),
        "tokens": filled("tokens", _whole_numbers(2**53), pa.int64()),
        "timestamp": filled("timestamp", _times, _TIME),
        "behavior_logprob": _logprobs(values, len(raws)),
        "extras": _all_extras(raws),
        "whole_state": pa.repeat(whole, len(raws)),
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
    return pa.array(column, pa.string())


def _policies(column: Column) -> pa.Array:
    return pa.array([("" if value is None else text_of(value)) or "logged" for value in column], pa.string())


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


def _whole_numbers(limit: int) -> Callable[[Column], pa.Array]:
    """Whole numbers from 0 up to below a limit."""

    def make(column: Column) -> pa.Array:
        _require(_types(column) <= {int, _NONE})
        _require(all(value is None or 0 <= value < limit for value in column))
        return pa.array(column, pa.int64())

    return make


def _times(column: Column) -> pa.Array:
    return pa.array(list(map(_timestamp, column)), _TIME)


def _logprobs(values: dict[str, Column], rows: int) -> pa.Array:
    """Logged log-probabilities, or the logarithms of probabilities where only those are there."""
    logged, probability = (values.get(name, [None] * rows) for name in ("behavior_logprob", "action_prob"))
    if (
        "behavior_logprob" not in values
        and _types(probability) <= {float}
        and all(0 < p <= 1 for p in probability)
    ):
        return pa.array(list(map(math.log, probability)), pa.float64())
    return pa.array(list(map(_logprob, logged, probability)), pa.float64())


def _all_extras(raws: RawTable) -> pa.Array:
    given = raws.values.get("extras")
    if given is None:
        texts = canonical_jsons(raws.extras) if any(raws.extras) else ["{}"] * len(raws)
        return pa.array(texts, pa.string())
    notes: Counter[str] = Counter()
    found = list(map(partial(_extras, notes=notes), given, raws.extras))
    _require(not notes)
    return pa.array(found, pa.string())
