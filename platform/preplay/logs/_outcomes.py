"""Outcomes that are known elsewhere (tickets, surveys, tests), joined onto the turns by a key."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from preplay.errors import PreplayError
from preplay.logs._check import FieldError, parse_number
from preplay.logs._files import LogFile
from preplay.logs._json_stream import json_lines, peek_head
from preplay.logs._records import Quarantined, excerpt
from preplay.logs.readers._csv_rows import Bad, csv_rows
from preplay.logs.readers._parquet_rows import parquet_rows

_REWARD = ("reward", "outcome", "score", "success")
_TURN = ("turn", "turn_id", "step")


@dataclass(frozen=True)
class Outcomes:
    """Rewards by key: ``by_session[key]`` and ``by_turn[key, turn]`` hold each distinct value and its source."""

    key: str
    by_session: dict[str, dict[float, str]] = field(default_factory=dict)
    by_turn: dict[tuple[str, int], dict[float, str]] = field(default_factory=dict)
    refused: list[Quarantined] = field(default_factory=list)


@dataclass(frozen=True)
class Joined:
    """Turns with their outcomes, the keys that were used, and what could not be used."""

    turns: pa.Table
    used: set[str]
    sessions: int
    """Sessions that got a reward."""
    conflicts: list[Quarantined]


def read_outcomes(path: str, key: str = "session_id") -> Outcomes:
    """Read a CSV, Parquet or JSONL file with the key, a reward (or outcome, score, success) and perhaps a turn."""
    outcomes = Outcomes(key)
    for source, record in _rows(LogFile(path)):
        if isinstance(record, str):
            outcomes.refused.append(Quarantined(source, "record", record))
            continue
        try:
            _add(outcomes, record, source)
        except FieldError as error:
            outcomes.refused.append(Quarantined(source, error.field, error.reason, excerpt(record)))
    if not outcomes.by_session and not outcomes.by_turn:
        why = f" ({outcomes.refused[0].field}: {outcomes.refused[0].reason})" if outcomes.refused else ""
        raise PreplayError(
            f"no usable outcome{why}.", where=path, fix=f"Give each row {key!r} and a reward (and a turn)."
        )
    return outcomes


def _add(outcomes: Outcomes, record: Mapping[str, Any], source: str) -> None:
    key = record.get(outcomes.key)
    if key in (None, ""):
        raise FieldError(outcomes.key, "missing")
    reward = next((record[name] for name in _REWARD if record.get(name) is not None), None)
    if reward is None:
        raise FieldError("reward", "missing")
    value = float(reward) if isinstance(reward, bool) else _truth(reward)
    turn = next((record[name] for name in _TURN if record.get(name) is not None), None)
    if turn is None:
        outcomes.by_session.setdefault(str(key), {}).setdefault(value, source)
    else:
        place = (str(key), int(parse_number("turn", turn)))
        outcomes.by_turn.setdefault(place, {}).setdefault(value, source)


def _truth(reward: Any) -> float:
    if isinstance(reward, str) and reward.strip().lower() in ("true", "false"):
        return float(reward.strip().lower() == "true")
    return parse_number("reward", reward)


def _rows(file: LogFile) -> Any:
    """Source and either a row as a mapping or, as text, what is wrong with it."""
    head = file.head()
    if head.startswith(b"PAR1"):
        for number, row in parquet_rows(file):
            yield file.where(number), row
    elif peek_head(head).kind == "jsonl":
        for record in json_lines(file):
            if isinstance(record, Quarantined):
                yield record.source, record.reason
            else:
                yield file.where(record.line), record.value
    else:
        for number, row in csv_rows(file):
            yield file.where(number), row.reason if isinstance(row, Bad) else row[0]


def join_outcomes(turns: pa.Table, outcomes: Outcomes) -> Joined:
    """Put each outcome on the last turn of its session, or on its turn; a conflict leaves the turn as logged.

    A conflict is: several different outcomes of one key, or a reward that was logged already and differs.
    A session that was cut at a gap keeps no outcome: its end, and with it the outcome, is not in the data.
    """
    rewards = turns["reward"].to_numpy().copy()
    starts = np.flatnonzero(turns["turn"].to_numpy() == 0)
    ends = np.append(starts[1:], turns.num_rows)
    keys = _keys(turns, starts, outcomes.key)
    last_extras = turns["extras"].take(pa.array(ends - 1)).to_pylist() if len(ends) else []
    used: set[str] = set()
    conflicts: list[Quarantined] = []
    joined = 0
    for key, start, end, extras in zip(keys, starts.tolist(), ends.tolist(), last_extras, strict=True):
        found = _of_session(outcomes, key, start, end, conflicts)
        used |= {key} if key is not None and (found or key in outcomes.by_session) else set()
        problem = _problem(found, rewards, start, end, extras)
        if problem:
            conflicts += [Quarantined(source, "outcome", problem) for _, source in found.values()]
            continue
        for row, (value, _) in found.items():
            rewards[row] = value
        joined += bool(found)
    place = turns.schema.get_field_index("reward")
    table = turns.set_column(place, turns.schema.field("reward"), pa.array(rewards))
    return Joined(table, used, joined, conflicts)


def _keys(turns: pa.Table, starts: np.ndarray, key: str) -> list[str | None]:
    """The key of each session: a Turn field, else a field of its first turn's extras."""
    if key in turns.column_names:
        return [None if v is None else str(v) for v in turns[key].take(pa.array(starts)).to_pylist()]
    extras = map(json.loads, turns["extras"].take(pa.array(starts)).to_pylist())
    return [str(e[key]) if e.get(key) is not None else None for e in extras]


def _of_session(
    outcomes: Outcomes, key: str | None, start: int, end: int, conflicts: list[Quarantined]
) -> dict[int, tuple[float, str]]:
    """Row, value and source of each outcome of a session that is free of contradictions."""
    if key is None:
        return {}
    found = (
        {start + t: v for t in range(end - start) if (v := outcomes.by_turn.get((key, t)))}
        if outcomes.by_turn
        else {}
    )
    if key in outcomes.by_session:
        if end - 1 in found:
            found[end - 1] = found[end - 1] | outcomes.by_session[key]
        else:
            found[end - 1] = outcomes.by_session[key]
    clear: dict[int, tuple[float, str]] = {}
    for row, values in found.items():
        if len(values) == 1:
            clear[row] = next(iter(values.items()))
            continue
        text = f"conflicting outcomes of {key!r}: {', '.join(f'{v:g}' for v in sorted(values))}"
        conflicts += [Quarantined(source, "outcome", text) for source in values.values()]
    return clear


def _problem(
    found: dict[int, tuple[float, str]], rewards: np.ndarray, start: int, end: int, extras: str
) -> str | None:
    if not found:
        return None
    if '"cut_at_gap":true' in extras and end - 1 in found:
        return "the session is cut before its end"
    logged = rewards[start:end]
    clash = [row for row, (value, _) in found.items() if rewards[row] not in (0.0, value)]
    if clash:
        return f"another reward ({rewards[clash[0]]:g}) is logged at turn {clash[0] - start}"
    if list(found) == [end - 1] and logged[:-1].any() and logged.sum() != found[end - 1][0]:
        return f"the session's turns already have a return of {logged.sum():g}"
    return None
