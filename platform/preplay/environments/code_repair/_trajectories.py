"""Sessions as a coding agent would have logged them: one trajectory per line, read by the format ``coding-agent``."""

import json
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import pyarrow as pa

_KEPT = ("candidates", "evidence", "evidence_names", "task_name", "solved")


def write_trajectories(turns: pa.Table, path: str | Path) -> int:
    """Write the sessions of :func:`log_sessions` to a JSON Lines file; how many there are."""
    count = 0
    with Path(path).open("w", encoding="utf-8") as out:
        for trajectory in _trajectories(turns):
            out.write(json.dumps(trajectory, ensure_ascii=False) + "\n")
            count += 1
    return count


def _trajectories(turns: pa.Table) -> Iterator[dict[str, Any]]:
    ordered = turns.sort_by([("session_id", "ascending"), ("turn", "ascending")])
    for session, rows in groupby(ordered.to_pylist(), key=lambda row: row["session_id"]):
        steps = list(rows)
        first, last = steps[0], steps[-1]
        yield {
            "problem_id": json.loads(first["extras"])["task_name"],
            "run": session,
            "policy": first["policy"],
            "problem_description": first["task"],
            "initial_state": first["observation"],
            "action_sequence": [_action(row) for row in steps],
            "terminal": last["terminated"],
        }


def _action(row: dict[str, Any]) -> dict[str, Any]:
    """One step; what a harness knew when it chose stands beside what the agent did."""
    known = json.loads(row["extras"])
    return {
        "thought": f"Attempt {row['turn'] + 1}.",
        "code_generated": row["action"],
        "test_executed": row["next_observation"],
        "reward": row["reward"],
        **{name: known[name] for name in _KEPT if name in known},
    }
