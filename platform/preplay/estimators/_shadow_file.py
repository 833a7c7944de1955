"""A file of shadow actions: what a new policy would do in logged states, without rewards."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet

from preplay.errors import PreplayError

_READERS = {
    ".jsonl": pyarrow.json.read_json,
    ".csv": pyarrow.csv.read_csv,
    ".parquet": pyarrow.parquet.read_table,
}


@dataclass(frozen=True)
class ShadowFile:
    """N rows: in the state before logged turn ``turn`` of ``session_id`` the policy would take ``action``.

    Several rows for one state are several samples. ``turn`` may equal the session's length: its last state.
    """

    session_id: list[str]
    turn: np.ndarray
    action: list[str]


def read_shadow_file(path: str | Path) -> ShadowFile:
    """Read ``session_id``, ``turn`` and ``action`` from JSON lines, CSV or Parquet.

    Raises:
        PreplayError: When a column is missing or empty, or a turn is not a whole number.
    """
    path = Path(path)
    reader = _READERS.get(path.suffix)
    if reader is None or not path.is_file():
        raise PreplayError(
            "there is no shadow file of a known kind here.",
            where=str(path),
            fix=f"Give one of {', '.join(_READERS)} with the columns session_id, turn, action.",
        )
    try:
        table: pa.Table = reader(path)
    except pa.ArrowInvalid as error:
        raise PreplayError(
            f"the file cannot be read ({str(error).splitlines()[0]}).", where=str(path)
        ) from error
    return ShadowFile(_texts(table, "session_id", path), _turns(table, path), _texts(table, "action", path))


def _texts(table: pa.Table, name: str, path: Path) -> list[str]:
    column = _column(table, name, path)
    return [value if isinstance(value, str) else str(value) for value in column.to_pylist()]


def _turns(table: pa.Table, path: Path) -> np.ndarray:
    column = _column(table, "turn", path)
    if not pa.types.is_integer(column.type):
        raise PreplayError(f"'turn' is {column.type}, not a whole number.", where=str(path))
    return column.to_numpy().astype(np.int64)


def _column(table: pa.Table, name: str, path: Path) -> pa.ChunkedArray:
    if name not in table.column_names:
        raise PreplayError(
            f"the column {name!r} is missing.",
            where=str(path),
            fix=f"Found: {', '.join(table.column_names)}.",
        )
    column = table.column(name)
    if column.null_count:
        row = int(np.argmax(column.is_null().to_numpy()))
        raise PreplayError(f"{column.null_count} rows have no {name!r}.", where=f"{path}, row {row}")
    return column
