"""Agent logs in any format, read, checked and kept as turns."""

from preplay.logs._card import DataCard, PolicyCard, PropensityCard, Spread, data_card
from preplay.logs._dataset import export_jsonl, ingest, load_card, load_quarantine, load_turns, write_dataset
from preplay.logs._files import Line, LogFile
from preplay.logs._language import dominant_language
from preplay.logs._messages import ToolCall, parse_action, parse_arguments, parse_observation, render_action
from preplay.logs._outcomes import Joined, Outcomes, join_outcomes, read_outcomes
from preplay.logs._read import ReadResult, read_logs
from preplay.logs._records import Merged, Outcome, Quarantined, RawTurn
from preplay.logs._registry import ENTRY_POINT_GROUP, Reader, Sniff, detect, reader, readers, register
from preplay.logs._render_card import render_card
from preplay.logs._schema import SCHEMA_VERSION, TURN_SCHEMA

__all__ = [
    "ENTRY_POINT_GROUP",
    "SCHEMA_VERSION",
    "TURN_SCHEMA",
    "DataCard",
    "Joined",
    "Line",
    "LogFile",
    "Merged",
    "Outcome",
    "Outcomes",
    "PolicyCard",
    "PropensityCard",
    "Quarantined",
    "RawTurn",
    "ReadResult",
    "Reader",
    "Sniff",
    "Spread",
    "ToolCall",
    "data_card",
    "detect",
    "dominant_language",
    "export_jsonl",
    "ingest",
    "join_outcomes",
    "load_card",
    "load_quarantine",
    "load_turns",
    "parse_action",
    "parse_arguments",
    "parse_observation",
    "read_logs",
    "read_outcomes",
    "reader",
    "readers",
    "register",
    "render_action",
    "render_card",
    "write_dataset",
]
