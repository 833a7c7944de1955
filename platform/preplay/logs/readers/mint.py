"""MINT results: one interactive session per line."""

from collections.abc import Iterator
from typing import Any

from preplay.logs._files import LogFile
from preplay.logs._json_stream import JsonRecord
from preplay.logs._messages import AGENT, conversation_turns
from preplay.logs._records import RawTurn, hash_record
from preplay.logs._registry import Item, Sniff, register
from preplay.logs.readers._chat import chat_message
from preplay.logs.readers._common import (
    as_dict,
    as_list,
    dict_or_empty,
    read_json_records,
    sniff_record,
    text_or_none,
    without,
)

_CUT = ("max_steps", "error")


@register
class Mint:
    """``{"state": {"history", "success", "latest_output"}, "task": {...}}`` per line."""

    name = "mint"
    description = "MINT benchmark results.jsonl"
    example = (
        '{"state": {"history": [{"role": "user", "content": "Task: put it in the drawer."}, {"role": "assistant", '
        '"content": "<execute>go()</execute>"}], "success": true, "terminate_reason": "task_success", '
        '"latest_output": {"content": "You put it there."}, "token_counter": {"total_tokens": 9}}, '
        '"task": {"task_id": "a", "task_name": "alfworld/put", "prompt": "Put it in the drawer."}}'
    )
    fields = (
        "state.history, state.success, state.terminate_reason, state.latest_output, task.prompt, task.task_id"
    )
    quirks = (
        "the last observation stands in latest_output; success is the last turn's reward 1; max_steps and errors "
        "are truncations; policy from the folder; the few-shot prompt goes to extras"
    )
    splittable = True

    def sniff(self, path: str, head: bytes) -> Sniff:
        def fits(record: dict[str, Any]) -> bool:
            state = record.get("state")
            return isinstance(state, dict) and isinstance(state.get("history"), list) and "task" in record

        return sniff_record(head, fits, 0.95, "state with a history beside a task")

    def read(self, file: LogFile) -> Iterator[Item]:
        policy = file.parts[-2] if len(file.parts) > 1 else file.name
        yield from read_json_records(file, lambda r, source: _session(r, policy, source), "state")


def _session(record: JsonRecord, policy: str, source: str) -> list[Item]:
    run = as_dict(record.value, "the record")
    state, task = as_dict(run.get("state"), "state"), as_dict(run.get("task"), "task")
    messages = [chat_message(m) for m in as_list(state.get("history"), "state.history")]
    prompt = text_or_none(task.get("prompt")) or ""
    shown = messages[0].text if messages else ""
    turns = [turn for _, part in conversation_turns(messages) for turn in part]
    if not turns:
        raise ValueError("the agent never answered")
    turns[0]["observation"] = prompt or shown
    if messages[-1].role == AGENT:
        turns[-1]["next_observation"] = text_or_none(dict_or_empty(state.get("latest_output")).get("content"))
    reason = state.get("terminate_reason")
    cut = reason in _CUT
    turns[-1] |= {"reward": float(state.get("success") is True), "terminated": not cut, "truncated": cut}
    left = {"first_message": shown} | without(run, "state", "task")
    left |= {"state": without(state, "history"), "task": without(task, "prompt")}
    session_id = f"{policy}/{task.get('task_id')}"
    digest = hash_record(record.raw)
    shared = {"policy": policy, "task": prompt or None}
    extras = [turn.pop("extras") for turn in turns]
    extras[0] |= left
    return [
        RawTurn(session_id, turn | shared, source, digest, own)
        for turn, own in zip(turns, extras, strict=True)
    ]
