"""One file (or a range of its lines) read by its reader into checked steps: the unit of parallel work."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import pyarrow as pa

from preplay.logs._check import STEP_SCHEMA, Step, check_outcome, check_turn
from preplay.logs._files import BROKEN_STREAM, LogFile
from preplay.logs._records import Outcome, Quarantined, RawTurn
from preplay.logs._registry import Item, Reader


@dataclass
class Parsed:
    """Checked steps of a file, what was refused, and how records fared that belong to no session."""

    steps: list[Step] = field(default_factory=list)
    quarantined: list[Quarantined] = field(default_factory=list)
    notes: Counter[str] = field(default_factory=Counter)
    records: Counter[str] = field(default_factory=Counter)

    def take_steps(self) -> pa.Table:
        """The steps read so far as a table; the list is emptied."""
        taken, self.steps = self.steps, []
        columns = [pa.array([s[f.name] for s in taken], type=f.type) for f in STEP_SCHEMA]
        return pa.Table.from_arrays(columns, schema=STEP_SCHEMA)


def parse(reader: Reader, file: LogFile) -> Parsed:
    """Read a whole file into memory."""
    parsed = Parsed()
    for _ in parse_into(reader, file, parsed):
        pass
    return parsed


def parse_into(reader: Reader, file: LogFile, parsed: Parsed) -> Iterator[None]:
    """Read a file item by item into ``parsed``, giving way after each so that a caller can empty it."""
    for seq, item in enumerate(read_items(reader, file), file.start):
        if isinstance(item, RawTurn):
            step, refused = check_turn(item, file.path, seq, parsed.notes)
            if step is not None:
                parsed.steps.append(step)
            if refused is not None:
                parsed.quarantined.append(refused)
                parsed.records["quarantined"] += step is None
        elif isinstance(item, Outcome):
            checked = check_outcome(item, file.path, seq, parsed.notes)
            (parsed.quarantined if isinstance(checked, Quarantined) else parsed.steps).append(checked)  # type: ignore[arg-type]
            parsed.records["quarantined"] += isinstance(checked, Quarantined)
        elif isinstance(item, Quarantined):
            parsed.quarantined.append(item)
            parsed.records["quarantined"] += 1
        else:
            parsed.records["merged"] += 1
        yield


def read_items(reader: Reader, file: LogFile) -> Iterator[Item]:
    """The reader's items; a stream that breaks off (a cut gzip file) ends in a quarantined rest."""
    last: Item | None = None
    try:
        for last in reader.read(file):
            yield last
    except BROKEN_STREAM as error:
        after = f" after {last.source}" if last else ""
        yield Quarantined(file.where(0), "file", f"cannot be read{after} ({error or type(error).__name__})")
