"""Coding-agent trajectories: a problem, an initial state and a sequence of thought, code and tests."""

from collections.abc import Iterator
from typing import Any

from preplay.logs._check import text_of
from preplay.logs._files import LogFile
from preplay.logs._json_stream import JsonRecord
from preplay.logs._records import RawTurn, hash_record
from preplay.logs._registry import Item, Sniff, register
from preplay.logs.readers._common import (
    as_dict,
    as_list,
    read_json_records,
    sniff_record,
    text_or_none,
    without,
)


@register
class CodingAgent:
    """``{"problem_id", "problem_description", "initial_state", "action_sequence", "reward", "terminal"}``."""

    name = "coding-agent"
    description = "Coding-agent trajectories (thought, code, tests)"
    example = (
        '{"problem_id": "p", "problem_description": "Sort a list.", "initial_state": "empty file", '
        '"action_sequence": '
        '[{"thought": "Use sorted", "code_generated": "sorted(x)", "test_executed": "2 passed"}], "reward": 1.0, '
        '"terminal": true}'
    )
    fields = (
        "problem_description, initial_state, reward, terminal, action_sequence (thought, code_generated, …)"
    )
    quirks = (
        "the code is the action, the test's result the next observation; thoughts go to extras; one reward for the "
        "session, a list of rewards, or one per action; several attempts at one problem are told apart by their line"
    )
    splittable = True

    def sniff(self, path: str, head: bytes) -> Sniff:
        def fits(record: dict[str, Any]) -> bool:
            return "problem_id" in record and isinstance(record.get("action_sequence"), list)

        return sniff_record(head, fits, 0.95, "problem_id and action_sequence")

    def read(self, file: LogFile) -> Iterator[Item]:
        yield from read_json_records(file, _session, "action_sequence")


def _session(record: JsonRecord, source: str) -> list[Item]:
    run = as_dict(record.value, "the record")
    actions = [as_dict(a, "an action") for a in as_list(run.get("action_sequence"), "action_sequence")]
    if not actions:
        raise ValueError("no action")
    rewards = _rewards(run.get("reward"), actions)
    session_id = f"{run.get('problem_id')}@{source.rsplit('/', 1)[-1]}"
    task = text_or_none(run.get("problem_description"))
    start = run.get("initial_state")
    seen = text_of(start) if start not in (None, "", {}) else task or ""
    left = without(run, "problem_description", "initial_state", "action_sequence", "reward", "terminal")
    terminal = run.get("terminal")
    items: list[Item] = []
    for i, action in enumerate(actions):
        last = i == len(actions) - 1
        shown = action.get("test_executed")
        values = {
            "turn": i,
            "policy": run.get("policy", run.get("model")),
            "task": task,
            "observation": seen,
            "action": action.get("code_generated"),
            "reward": rewards[i],
            "next_observation": "" if shown is None else text_of(shown),
        }
        if terminal is not None:
            values |= {"terminated": last and terminal is True, "truncated": last and terminal is not True}
        extras = without(action, "code_generated", "test_executed", "reward")
        items.append(
            RawTurn(session_id, values, source, hash_record(record.raw), extras | (left if i == 0 else {}))
        )
        seen = values["next_observation"]
    return items


def _rewards(reward: Any, actions: list[dict[str, Any]]) -> list[Any]:
    """The reward of each action: the session's one on the last, a list, or the actions' own."""
    if isinstance(reward, list):
        if len(reward) != len(actions):
            raise ValueError(f"{len(reward)} rewards for {len(actions)} actions")
        return reward
    own = [a.get("reward") for a in actions]
    if reward is None:
        return own
    if any(r is not None for r in own):
        raise ValueError("a reward for the session beside rewards of its actions")
    return [0.0] * (len(actions) - 1) + [reward]
