"""Sessions from a table of steps: whole columns at once where a session is plain, step by step where not.

A session is plain when its turns are numbered without a gap and arrived in order, nothing of it is
quarantined, every reward and next state is there, the states are no histories and no end flag stands in the
middle. Both ways give the same turns.
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from preplay.logs._check import Step
from preplay.logs._history import new_part
from preplay.logs._records import Quarantined
from preplay.logs._schema import TURN_SCHEMA
from preplay.logs._sessions import Assembled, assemble

_RENAMED = {"observation": "state", "next_observation": "next_state"}
_CHUNK = 4096


@dataclass
class AssembledTurns:
    """Turns of whole sessions in order, what was refused, remarks and the fate of the records.

    The sessions stand in the order of the log where all of them are plain there, else in the order of their ids.
    """

    turns: pa.Table
    quarantined: list[Quarantined] = field(default_factory=list)
    notes: Counter[str] = field(default_factory=Counter)
    records: Counter[str] = field(default_factory=Counter)


def assemble_steps(steps: pa.Table) -> AssembledTurns:
    """Assemble all sessions of a table of steps (``STEP_SCHEMA``), which holds each session whole."""
    if not steps.num_rows:
        return AssembledTurns(TURN_SCHEMA.empty_table())
    steps = _whole_sessions(steps)
    starts = _starts(steps["session_id"])
    plain = _plain_sessions(steps, starts)
    sizes = np.diff([*starts, steps.num_rows])
    if plain.all():
        result = AssembledTurns(TURN_SCHEMA.empty_table())
        result.turns = _plain_turns(steps, sizes, result)
        return result
    mask = np.repeat(plain, sizes)
    result = _step_by_step(steps.filter(pa.array(~mask)))
    if plain.any():
        turns = _plain_turns(steps.filter(pa.array(mask)), sizes[plain], result)
        result.turns = sort_turns(pa.concat_tables([turns, result.turns]))
    return result


def _whole_sessions(steps: pa.Table) -> pa.Table:
    """As they are where each session stands together and in order, else by session, turn number and arrival."""
    new_session = ~_same_as_before(steps["session_id"])
    in_order = np.diff(_numpy(steps["order"], -1)) > 0
    sessions = pc.call_function("count_distinct", [steps["session_id"]]).as_py()
    if new_session.sum() + 1 == sessions and (new_session | in_order).all():
        return steps.combine_chunks()  # what is written must not depend on how the log was cut
    keys = [(name, "ascending") for name in ("session_id", "order", "file", "seq")]
    return steps.sort_by(keys).combine_chunks()


def _step_by_step(steps: pa.Table) -> AssembledTurns:
    out = Assembled()
    session: list[Step] = []
    tables: list[pa.Table] = []
    for batch in steps.to_batches(max_chunksize=_CHUNK):
        for step in batch.to_pylist():
            if session and step["session_id"] != session[0]["session_id"]:
                assemble(session[0]["session_id"], session, out)
                session = []
            session.append(step)
        if len(out.turns) > _CHUNK:
            tables.append(pa.Table.from_pylist(out.turns, schema=TURN_SCHEMA))
            out.turns = []
    if session:
        assemble(session[0]["session_id"], session, out)
    tables.append(pa.Table.from_pylist(out.turns, schema=TURN_SCHEMA))
    return AssembledTurns(sort_turns(pa.concat_tables(tables)), out.quarantined, out.notes, out.records)


def sort_turns(turns: pa.Table) -> pa.Table:
    """By session and turn."""
    return turns.sort_by([("session_id", "ascending"), ("turn", "ascending")])


def _starts(column: pa.ChunkedArray) -> np.ndarray:
    """Row numbers at which a sorted column takes a new value."""
    return np.flatnonzero(np.concatenate([[True], ~_same_as_before(column)]))


def _same_as_before(column: Any) -> np.ndarray:
    """For rows 1…: whether the value (null included) equals the one of the row before."""
    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    codes = column.dictionary_encode(null_encoding="encode").indices.to_numpy()
    return codes[1:] == codes[:-1]


def _numpy(column: pa.ChunkedArray, null: Any) -> np.ndarray:
    return column.fill_null(null).to_numpy()


def _plain_sessions(steps: pa.Table, starts: np.ndarray) -> np.ndarray:
    """Which sessions can be assembled by columns."""
    first = np.zeros(steps.num_rows, dtype=bool)
    first[starts] = True
    last = np.append(first[1:], True)
    order = _numpy(steps["order"], -2)
    follows = np.append(False, order[1:] == order[:-1] + 1)
    for name in ("task", "file", "whole_state"):
        follows[1:] &= _same_as_before(steps[name])
    follows[1:] &= np.diff(steps["seq"].to_numpy()) > 0
    terminated, truncated = _numpy(steps["terminated"], False), _numpy(steps["truncated"], False)
    fine = np.where(first, (order == 0) | (order == 1), follows)
    fine &= ~steps["lost"].to_numpy() & ~steps["outcome"].to_numpy()
    fine &= steps["reward"].is_valid().to_numpy() & steps["next_state"].is_valid().to_numpy()
    fine &= ~(terminated & truncated) & (last | ~(terminated | truncated))
    plain = np.logical_and.reduceat(fine, starts)
    return plain & ~_may_be_histories(steps, starts)


def _may_be_histories(steps: pa.Table, starts: np.ndarray) -> np.ndarray:
    """Sessions whose first next state begins with its state."""
    heads = steps.select(["state", "next_state", "whole_state"]).take(pa.array(starts))
    longer = pc.call_function("greater", [_lengths(heads["next_state"]), _lengths(heads["state"])])
    suspects = heads["whole_state"].to_numpy() & _numpy(longer, False)
    rows = np.flatnonzero(suspects)
    pairs = heads.take(pa.array(rows)).to_pylist()
    suspects[rows] = [new_part(p["state"], p["next_state"]) is not None for p in pairs]
    return suspects


def _lengths(column: pa.ChunkedArray) -> Any:
    return pc.call_function("binary_length", [column])


def _plain_turns(steps: pa.Table, sizes: np.ndarray, result: AssembledTurns) -> pa.Table:
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    order = steps["order"].to_numpy()
    known = steps["terminated"].is_valid().to_numpy() | steps["truncated"].is_valid().to_numpy()
    flagged = np.logical_or.reduceat(known, starts)
    terminated, truncated = (
        _numpy(steps["terminated"], False).copy(),
        _numpy(steps["truncated"], False).copy(),
    )
    ends = starts + sizes - 1
    is_open = ~(terminated[ends] | truncated[ends])
    terminated[ends] |= is_open & ~flagged
    truncated[ends] |= is_open & flagged
    result.notes.update(end_assumed=int((is_open & ~flagged).sum()), open_end=int((is_open & flagged).sum()))
    result.records["read"] += int(pc.call_function("count_distinct", [steps["source"]]).as_py())
    made = {
        "turn": pa.array((order - np.repeat(order[starts], sizes)).astype(np.int32)),
        "terminated": pa.array(terminated),
        "truncated": pa.array(truncated),
    }
    columns = [made[n] if n in made else steps[_RENAMED.get(n, n)] for n in TURN_SCHEMA.names]
    return pa.Table.from_arrays(columns, schema=TURN_SCHEMA)
