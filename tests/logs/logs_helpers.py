"""Small builders shared by the tests of preplay.logs."""

import json
import os
from pathlib import Path

import pytest

from preplay.logs import read_logs

SHARED = Path(os.environ.get("PREPLAY_SHARED_DATA", Path(__file__).parents[2].parent / "shared" / "data"))


def shared(name: str) -> str:
    """A folder of the real logs; the test is skipped where they are not there."""
    folder = SHARED / name
    if not folder.exists():
        pytest.skip(f"the real logs {name!r} are not on this machine (set PREPLAY_SHARED_DATA)")
    return str(folder)


def row(session="s", turn=0, *, last=False, **changes):
    """One flat record; the next state of turn t is the state of turn t + 1."""
    record = {
        "session_id": session,
        "turn_id": turn,
        "state": f"state {turn}",
        "action": f"action {turn}",
        "reward": float(turn),
        "next_state": f"state {turn + 1}",
        "terminated": last,
        "truncated": False,
    }
    return {k: v for k, v in (record | changes).items() if v is not ...}


def write_jsonl(path: Path, records) -> str:
    path.write_text("".join(json.dumps(r) + "\n" for r in records))
    return str(path)


def read(path, records, format="auto"):
    """Write records as JSON lines and read them back."""
    return read_logs([write_jsonl(path / "log.jsonl", records)], format)


def reasons(result):
    """(line, field, reason) of every quarantined entry."""
    return [(q.source.rsplit(":", 1)[-1], q.field, q.reason) for q in result.quarantined]


def column(result, name):
    return result.turns[name].to_pylist()
