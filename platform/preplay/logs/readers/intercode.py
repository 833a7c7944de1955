"""InterCode results: one JSON object per file, one task per key, parallel lists of actions and observations."""

import json
import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import zip_longest
from pathlib import Path
from typing import Any

from preplay.logs._files import LogFile
from preplay.logs._json_stream import JsonRecord, json_items, peek_head
from preplay.logs._records import Quarantined, RawTurn, excerpt, hash_record
from preplay.logs._registry import Item, Sniff, register

_FILE_NAME = re.compile(r"ic_[a-z]+_[a-z_]+?_(?P<model>.+?)_(?P<turns>\d+)_turns")
_DEFAULT_TURNS = "10"
_QUESTIONS = "ic_spider_dev.json"
_QUESTION_FOLDERS = ("environment", "data/sql/spider", "sql/spider", "spider", ".")
Pair = tuple[dict[str, Any], dict[str, Any]]
_LISTS = ("actions", "observations", "rewards")


@register
class InterCode:
    """One turn per action of ``turn_history``; the observation is the previous one, at first the question."""

    name = "intercode"
    description = "InterCode result files (SQL, Bash, Python)"
    example = (
        '{"0": {"environment": "ic_sql", "task_id": 0, "query": "How many users?", "turn_history": {'
        '"actions": ["SELECT COUNT(*) FROM users"], "observations": ["[(3,)]"], "rewards": [1.0], '
        '"valid_action": [true]}, "summary": {"max_reward": 1.0, "turns_taken": 1, "turns_max": 10}}}'
    )
    fields = (
        "query, turn_history (actions, observations, rewards, valid_action), summary, environment, hardness"
    )
    quirks = (
        "policy and turn budget from the file name; reward 1 ends the session; a last action without an "
        "observation (blocked answer) is kept with reward 0; database joined from the questions file when near"
    )
    splittable = False

    def sniff(self, path: str, head: bytes) -> Sniff:
        peek = peek_head(head)
        if peek.kind not in ("object", "jsonl"):
            return Sniff(0, f"no JSON object ({peek.kind})")
        if not re.match(r'\s*\{\s*"[^"]*"\s*:\s*\{', peek.text) or '"turn_history"' not in peek.text:
            return Sniff(0, "no tasks with a turn_history")
        return Sniff(0.95, "tasks with a turn_history")

    def read(self, file: LogFile) -> Iterator[Item]:
        policy = _policy(file)
        databases = _databases(file.path)
        for record in json_items(file):
            if isinstance(record, Quarantined):
                yield record
                continue
            source = file.where(record.line)
            try:
                yield from _session(record, policy, databases, source)
            except ValueError as error:
                yield Quarantined(source, "turn_history", str(error), excerpt(record.raw))


def _policy(file: LogFile) -> str:
    """The model; under another turn budget than the benchmark's 10 it is another policy."""
    match = _FILE_NAME.fullmatch(file.name)
    if not match:
        return file.name
    budget = "" if match["turns"] == _DEFAULT_TURNS else f"-{match['turns']}-turns"
    return match["model"] + budget


def _session(record: JsonRecord, policy: str, databases: list[str], source: str) -> Iterator[Item]:
    task = record.value
    if not isinstance(task, dict) or not isinstance(task.get("turn_history"), dict):
        raise ValueError("no turn_history")
    history = task["turn_history"]
    lists = [history.get(name) for name in _LISTS]
    if not all(isinstance(values, list) for values in lists):
        raise ValueError(f"{', '.join(_LISTS)} must be lists")
    actions, observations, rewards = lists
    if not actions or not len(actions) - 1 <= len(observations) <= len(rewards) <= len(actions):
        counts = f"{len(actions)} actions, {len(observations)} observations, {len(rewards)} rewards"
        raise ValueError(f"the lists do not match: {counts}")
    digest = hash_record(record.raw)
    session_id = f"{policy}/{record.key}"
    left = {k: v for k, v in task.items() if k not in ("query", "turn_history")}
    left |= {k: v for k, v in history.items() if k not in (*_LISTS, "valid_action")}
    left |= _database(task.get("task_id"), databases)
    for values, extras in _turns(task, history, len(actions)):
        yield RawTurn(session_id, values | {"policy": policy}, source, digest, extras | left)


def _turns(
    task: dict[str, Any], history: dict[str, Any], count: int
) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    summary = task.get("summary")
    limit = summary.get("turns_max") if isinstance(summary, dict) else None
    valid = history.get("valid_action")
    seen = task.get("query")
    steps = zip_longest(history["actions"], history["observations"], history["rewards"])
    for i, (action, observation, reward) in enumerate(steps):
        executed = i < len(history["observations"])
        ends = i == count - 1
        solved = reward == 1
        values = {
            "turn": i,
            "task": task.get("query"),
            "observation": seen,
            "action": action,
            "reward": 0.0 if reward is None and not executed else reward,
            "next_observation": observation if executed else "",
            "terminated": ends and (solved or not executed or count != limit),
            "truncated": ends and not solved and executed and count == limit,
        }
        extras = {"valid_action": valid[i]} if isinstance(valid, list) and i < len(valid) else {}
        yield values, extras | ({} if executed else {"executed": False})
        seen = observation


def _database(task_id: Any, databases: list[str]) -> dict[str, Any]:
    known = isinstance(task_id, int) and not isinstance(task_id, bool) and 0 <= task_id < len(databases)
    return {"database": databases[task_id]} if known else {}


@lru_cache(maxsize=8)
def _databases(path: str) -> list[str]:
    """The database of each question, from the benchmark's questions file where it lies near the results."""
    if "://" in path:
        return []
    for folder in list(Path(path).absolute().parents)[:5]:
        for place in _QUESTION_FOLDERS:
            file = folder / place / _QUESTIONS
            if file.is_file():
                questions = json.loads(file.read_text())
                return [str(q.get("db")) for q in questions]
    return []
