"""SWE-agent trajectories: one .traj file per session."""

import re
from collections.abc import Iterator
from typing import Any

from preplay.logs._files import LogFile
from preplay.logs._json_stream import JsonRecord, json_document, peek_head
from preplay.logs._records import Quarantined, RawTurn, excerpt, hash_record
from preplay.logs._registry import Item, Sniff, register
from preplay.logs.readers._chat import chat_message, conversation_items
from preplay.logs.readers._common import as_dict, as_list, dict_or_empty, list_or_empty, without

_KEYS = ('"trajectory"', '"history"')
_RUN_FOLDER = re.compile(r"(?P<policy>[^/]+?)__.+__.+")


@register
class SweAgent:
    """One turn per step of ``trajectory``; files with a ``history`` only are read as conversations."""

    name = "swe-agent"
    description = "SWE-agent .traj files"
    example = (
        '{"environment": "main", "trajectory": [{"action": "ls", "observation": "a.py", "response": "Look first.", '
        '"thought": "Look", "state": "{}"}], "history": [{"role": "system", "content": "You are a programmer."}, '
        '{"role": "user", "content": "Mend the bug."}], "info": {"exit_status": "submitted"}}'
    )
    fields = "trajectory (action, observation, thought, response, state, execution_time), history, info, environment"
    quirks = (
        "the first observation is the instance message of the history (demonstrations skipped); exit_status gives "
        "the end; policy from the run folder; no reward in the file: join the outcomes"
    )
    splittable = False

    def sniff(self, path: str, head: bytes) -> Sniff:
        peek = peek_head(head)
        if peek.kind not in ("object", "jsonl"):
            return Sniff(0, f"no JSON object ({peek.kind})")
        named = path.removesuffix(".gz").removesuffix(".zst").endswith(".traj")
        if named and any(key in peek.text for key in _KEYS):
            return Sniff(0.95, "a .traj file")
        steps = isinstance(peek.first, dict) and isinstance(peek.first.get("trajectory"), list)
        if steps and isinstance(peek.first.get("history"), list):
            return Sniff(0.9, "a trajectory beside a history")
        return Sniff(0, "no .traj file and no trajectory beside a history")

    def read(self, file: LogFile) -> Iterator[Item]:
        for record in json_document(file):
            if isinstance(record, Quarantined):
                yield record
                continue
            try:
                yield from _session(record, file)
            except ValueError as error:
                yield Quarantined(file.where(1), "trajectory", str(error), excerpt(record.raw))


def _policy(file: LogFile) -> str:
    folder = file.parts[-2] if len(file.parts) > 1 else ""
    match = _RUN_FOLDER.fullmatch(folder)
    return match["policy"] if match else "swe-agent"


def _session(record: JsonRecord, file: LogFile) -> list[Item]:
    run = as_dict(record.value, "the file")
    source, digest = file.where(1), hash_record(record.raw)
    session_id = "/".join([*file.parts[-2:-1], file.name])
    info = dict_or_empty(run.get("info"))
    status = info.get("exit_status")
    ended = isinstance(status, str) and status.startswith("submitted") and "(" not in status
    left = without(run, "trajectory", "history")
    if not run.get("trajectory"):
        messages = [chat_message(m) for m in as_list(run.get("history"), "history")]
        common = {"policy": _policy(file), "terminated": ended, "truncated": not ended}
        return conversation_items(messages, session_id, common, left, (source, digest))
    steps = [as_dict(s, "a step") for s in as_list(run["trajectory"], "trajectory")]
    task, seen = _start(list_or_empty(run.get("history")))
    items: list[Item] = []
    for i, step in enumerate(steps):
        last = i == len(steps) - 1
        values = {
            "turn": i,
            "policy": _policy(file),
            "task": task,
            "observation": seen,
            "action": step.get("action"),
            "next_observation": step.get("observation"),
            "latency_s": step.get("execution_time"),
            "terminated": last and ended,
            "truncated": last and not ended,
        }
        extras = without(step, "action", "observation", "execution_time", "messages", "query")
        items.append(RawTurn(session_id, values, source, digest, extras | (left if i == 0 else {})))
        seen = step.get("observation")
    return items


def _start(history: list[Any]) -> tuple[str | None, str]:
    """System prompt and the instance's message: the last one before the agent first speaks."""
    task, instance = None, ""
    for message in map(dict_or_empty, history):
        if message.get("is_demo"):
            continue
        if message.get("role") == "assistant":
            break
        if message.get("role") == "system" and isinstance(message.get("content"), str):
            task = message["content"]
        elif message.get("role") == "user":
            instance = chat_message(message).text
    return task, instance or task or ""
