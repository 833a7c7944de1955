"""Agent logs in any format, read, checked and kept as turns."""

from preplay.logs._files import Line, LogFile
from preplay.logs._read import ReadResult, read_logs
from preplay.logs._records import Merged, Quarantined, RawTurn
from preplay.logs._registry import ENTRY_POINT_GROUP, Reader, Sniff, detect, reader, readers, register
from preplay.logs._schema import SCHEMA_VERSION, TURN_SCHEMA

__all__ = [
    "ENTRY_POINT_GROUP",
    "SCHEMA_VERSION",
    "TURN_SCHEMA",
    "Line",
    "LogFile",
    "Merged",
    "Quarantined",
    "RawTurn",
    "ReadResult",
    "Reader",
    "Sniff",
    "detect",
    "read_logs",
    "reader",
    "readers",
    "register",
]
