"""Logs with a known rule: a session is solved when the key that the agent uses is the one the room showed."""

import json

import numpy as np
import pyarrow as pa
import pytest

from preplay.logs import TURN_SCHEMA


def make_turns(sessions: list[dict]) -> pa.Table:
    """Turns from ``{policy, task, room, steps: [(action, next observation, reward)]}``; they stop at success."""
    rows = []
    for number, session in enumerate(sessions):
        seen, last = session["task"], len(session["steps"]) - 1
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
                    "terminated": turn == last and reward == 1,
                    "truncated": turn == last and reward != 1,
                    "extras": json.dumps({"room": session["room"]} if turn == 0 else {}),
                    "source": "made",
                    "record_hash": "",
                }
            )
            seen = after
    return pa.Table.from_pylist(rows, schema=TURN_SCHEMA)


def key_logs(
    skills: dict[str, float], call: str, *, rooms: int = 12, tasks: int = 6, seed: int = 0
) -> pa.Table:
    """Policies that name the room's key with their skill's chance, else one that is not there; three tries.

    ``call`` formats an action from ``{key}``. A right key solves the room in four of five tries.
    """
    rng = np.random.default_rng(seed)
    sessions = []
    for policy, skill in skills.items():
        for room in range(rooms):
            for task in range(tasks):
                sessions.append(_session(policy, skill, room, task, call, rng))
    return make_turns(sessions)


def _session(policy: str, skill: float, room: int, task: int, call: str, rng: np.random.Generator) -> dict:
    right, wrong = f"k{room}x{room * 7 % 10}", f"z{rng.integers(10**6)}"
    steps: list[tuple[str, str, int]] = [(call.format(key="list"), f"[({right!r},)]", 0)]
    for _ in range(3):
        knows = rng.random() < skill
        opens = knows and rng.random() < 0.8
        seen = "[('open',)]" if opens else f"[('shut', {int(rng.integers(99))})]"
        steps.append(
            (call.format(key=right if knows else wrong), seen if knows else "!! bad key", int(opens))
        )
        if opens:
            break
    return {"policy": policy, "task": f"open door {task}", "room": f"room {room}", "steps": steps}


SKILLS = {"p10": 0.1, "p30": 0.3, "p50": 0.5, "p70": 0.7, "p90": 0.9}


@pytest.fixture(scope="session")
def key_turns() -> pa.Table:
    """Five policies of different skill whose actions are JSON calls."""
    return key_logs(SKILLS, '{{"name": "unlock", "arguments": {{"key": "{key}"}}}}')
