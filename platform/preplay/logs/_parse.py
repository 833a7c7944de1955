"""One file (or a range of its lines) read by its reader into checked steps: the unit of parallel work."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import pyarrow as pa

from preplay.logs._check import STEP_SCHEMA, Step, check_outcome, check_turn
from preplay.logs._check_columns import check_block
from preplay.logs._files import BROKEN_STREAM, LogFile
from preplay.logs._records import Merged, Outcome, Quarantined, RawTable, RawTurn
from preplay.logs._registry import BlockReader, Item, Reader

_BLOCK, _SMALL_BLOCK = 1024, 32


@dataclass
class Parsed:
    """Checked steps of a file, what was refused, and how records fared that belong to no session."""

    tables: list[pa.Table] = field(default_factory=list)
    quarantined: list[Quarantined] = field(default_factory=list)
    notes: Counter[str] = field(default_factory=Counter)
    records: Counter[str] = field(default_factory=Counter)

    def check(self, raws: list[RawTurn], file: str, first: int) -> None:
        """Check turns with the arrival numbers ``first`` and up: at once if plain, else in smaller parts."""
        table = RawTable.of(raws) if len(raws) >= _SMALL_BLOCK else None
        if table is not None and self.check_table(table, file, first):
            return
        if len(raws) < _SMALL_BLOCK:
            self._check_singly(raws, file, first)
        else:
            half = len(raws) // 2
            self.check(raws[:half], file, first)
            self.check(raws[half:], file, first + half)

    def check_table(self, raws: RawTable, file: str, first: int) -> bool:
        """Check turns by columns; False, and nothing done, when not all are plain."""
        table = check_block(raws, file, first)
        if table is not None:
            self.tables.append(table)
        return table is not None

    def add_steps(self, steps: list[Step]) -> None:
        """Steps that were checked one by one."""
        if steps:
            columns = [pa.array([s[f.name] for s in steps], type=f.type) for f in STEP_SCHEMA]
            self.tables.append(pa.Table.from_arrays(columns, schema=STEP_SCHEMA))

    def take_steps(self) -> pa.Table:
        """The steps read so far as a table; they are forgotten here."""
        taken, self.tables = self.tables, []
        return pa.concat_tables(taken) if taken else STEP_SCHEMA.empty_table()

    def _check_singly(self, raws: list[RawTurn], file: str, first: int) -> None:
        steps = []
        for seq, raw in enumerate(raws, first):
            step, refused = check_turn(raw, file, seq, self.notes)
            if step is not None:
                steps.append(step)
            if refused is not None:
                self.quarantined.append(refused)
                self.records["quarantined"] += step is None
        self.add_steps(steps)


def parse(reader: Reader, file: LogFile) -> Parsed:
    """Read a whole file into memory."""
    parsed = Parsed()
    for _ in parse_into(reader, file, parsed):
        pass
    return parsed


def parse_into(reader: Reader, file: LogFile, parsed: Parsed) -> Iterator[None]:
    """Read a file into ``parsed``, giving way after each block of items so that a caller can empty it."""
    block: list[RawTurn] = []
    seq = file.start
    for item in read_items(reader, file):
        if isinstance(item, RawTurn) and len(block) < _BLOCK:
            block.append(item)
            continue
        parsed.check(block, file.path, seq)
        seq, block = seq + len(block), []
        if isinstance(item, RawTurn):
            block = [item]
        elif isinstance(item, RawTable):
            if not parsed.check_table(item, file.path, seq):
                parsed.check(item.turns(), file.path, seq)
            seq += len(item)
        else:
            _take(item, file, seq, parsed)
            seq += 1
        yield
    parsed.check(block, file.path, seq)
    yield


def _take(item: Outcome | Quarantined | Merged, file: LogFile, seq: int, parsed: Parsed) -> None:
    """An item that is no turn."""
    if isinstance(item, Outcome):
        checked = check_outcome(item, file.path, seq, parsed.notes)
        if isinstance(checked, Quarantined):
            item = checked
        else:
            parsed.add_steps([checked])
            return
    if isinstance(item, Quarantined):
        parsed.quarantined.append(item)
        parsed.records["quarantined"] += 1
    else:
        parsed.records["merged"] += 1


def read_items(reader: Reader, file: LogFile) -> Iterator[Item | RawTable]:
    """The reader's items; a stream that breaks off (a cut gzip file) ends in a quarantined rest."""
    last: Item | RawTable | None = None
    try:
        for last in reader.read_blocks(file) if isinstance(reader, BlockReader) else reader.read(file):
            yield last
    except BROKEN_STREAM as error:
        source = last.sources[-1] if isinstance(last, RawTable) else last and last.source
        after = f" after {source}" if source else ""
        yield Quarantined(file.where(0), "file", f"cannot be read{after} ({error or type(error).__name__})")
