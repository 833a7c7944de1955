"""Small logs made by hand."""

import json

import pyarrow as pa
import pytest

from preplay.logs import TURN_SCHEMA


def make_turns(sessions: list[dict]) -> pa.Table:
    """Turns from ``{policy, task, steps: [(action, next observation, reward)], extras}``, in order."""
    rows = []
    for number, session in enumerate(sessions):
        seen = session["task"]
        last = len(session["steps"]) - 1
        for turn, (action, after, reward) in enumerate(session["steps"]):
            rows.append(
                {
                    "session_id": f"{number:05}",
                    "turn": turn,
                    "policy": session["policy"],
                    "task": session["task"],
                    "observation": seen,
                    "action": action,
                    "reward": float(reward),
                    "next_observation": after,
                    "terminated": turn == last,
                    "truncated": False,
                    "extras": json.dumps(session.get("extras", {}) if turn == 0 else {}),
                    "source": "made",
                    "record_hash": "",
                }
            )
            seen = after
    return pa.Table.from_pylist(rows, schema=TURN_SCHEMA)


@pytest.fixture
def shop():
    """Two policies in one database; ``a`` finds the table first, ``b`` guesses a wrong one, then repeats itself."""
    a = {
        "policy": "a",
        "task": "How many pets are there?",
        "steps": [("SHOW TABLES", "[('Pets',), ('owner',)]", 0), ("SELECT count(*) FROM pets", "[(3,)]", 1)],
        "extras": {"database": "shop"},
    }
    wrong = "Error executing query: Table 'shop.animals' doesn't exist"
    b = {
        "policy": "b",
        "task": "How many pets are there?",
        "steps": [
            ("SELECT count(*) FROM animals", wrong, 0),
            ("select COUNT(*) from Animals;", wrong, 0),
            ("SELECT count(*) FROM pets WHERE owner = 'Joe Smith'", "[]", 0),
        ],
        "extras": {"database": "shop"},
    }
    other = {
        "policy": "a",
        "task": "Name it",
        "steps": [("SHOW TABLES", "[('cars',)]", 0)],
        "extras": {"database": "x"},
    }
    third = {**other, "policy": "b"}
    return make_turns([a, b, other, third])
