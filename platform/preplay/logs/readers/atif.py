"""ATIF, the Agent Trajectory Interchange Format: one trajectory per JSON document."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from preplay.logs._files import LogFile
from preplay.logs._json_stream import JsonRecord
from preplay.logs._messages import AGENT, SYSTEM, TOOL, USER, Message, ToolCall, content_text, parse_arguments
from preplay.logs._records import hash_record
from preplay.logs._registry import Item, Sniff, register
from preplay.logs.readers._chat import conversation_items
from preplay.logs.readers._common import (
    as_dict,
    as_list,
    dict_or_empty,
    list_or_empty,
    read_json_records,
    sniff_record,
    text_or_none,
    without,
)

_SOURCES = {"system": SYSTEM, "user": USER, "agent": AGENT}


@register
class Atif:
    """``{"schema_version": "ATIF-v…", "session_id", "agent", "steps"}``."""

    name = "atif"
    description = "ATIF agent trajectories (Harbor)"
    example = (
        '{"schema_version": "ATIF-v1.4", "session_id": "s", "agent": {"name": "a", "version": "1"}, "steps": ['
        '{"step_id": 1, "source": "user", "message": "Price?"}, {"step_id": 2, "source": "agent", "message": "", '
        '"tool_calls": [{"tool_call_id": "c", "function_name": "price", "arguments": {}}], '
        '"observation": {"results": [{"source_call_id": "c", "content": "185"}]}, '
        '"metrics": {"logprobs": [-0.1, -0.2]}}]}'
    )
    fields = (
        "steps (source, message, tool_calls, observation.results, metrics), agent, session_id, extra.reward"
    )
    quirks = (
        "the sum of a step's token log-probs is the action's log-prob; a step with a gap in step_id is refused; "
        "reasoning and references to sub-agents go to extras; reward from metrics or extra"
    )
    splittable = True

    def sniff(self, path: str, head: bytes) -> Sniff:
        def fits(record: dict[str, Any]) -> bool:
            return str(record.get("schema_version", "")).startswith("ATIF")

        return sniff_record(head, fits, 0.98, "schema_version ATIF")

    def read(self, file: LogFile) -> Iterator[Item]:
        yield from read_json_records(file, _trajectory, "steps")


def _trajectory(record: JsonRecord, source: str) -> list[Item]:
    run = as_dict(record.value, "the record")
    agent = dict_or_empty(run.get("agent"))
    steps = [as_dict(s, "a step") for s in as_list(run.get("steps"), "steps")]
    _check_order([s.get("step_id") for s in steps])
    messages = [m for step in steps for m in _messages(step)]
    common = {"policy": text_or_none(agent.get("model_name")) or text_or_none(agent.get("name"))}
    reward = dict_or_empty(run.get("extra")).get("reward")
    common |= {} if reward is None else {"reward": reward}
    session_id = run.get("session_id")
    left = without(run, "steps", "session_id")
    place = (source, hash_record(record.raw))
    return conversation_items(messages, source if session_id is None else session_id, common, left, place)


def _check_order(ids: list[Any]) -> None:
    numbers = [i for i in ids if isinstance(i, int)]
    if len(numbers) == len(ids) and any(b != a + 1 for a, b in pairwise(numbers)):
        raise ValueError(f"the step_ids are not consecutive: {ids[:20]}")


def _messages(step: dict[str, Any]) -> list[Message]:
    role = _SOURCES.get(str(step.get("source")))
    if role is None:
        raise ValueError(f"a step has the unknown source {str(step.get('source'))[:40]!r}")
    text = content_text(step.get("message"))[0]
    results = _results(step)
    if role != AGENT:
        return [
            Message(role, text, extras=without(step, "source", "message", "observation", "step_id")),
            *results,
        ]
    metrics = dict_or_empty(step.get("metrics"))
    calls = [_call(c) for c in list_or_empty(step.get("tool_calls"))]
    extras = without(step, "source", "message", "tool_calls", "observation", "step_id", "timestamp")
    return [Message(AGENT, text, calls, extras=extras, values=_values(step, metrics)), *results]


def _results(step: dict[str, Any]) -> list[Message]:
    results = list_or_empty(dict_or_empty(step.get("observation")).get("results"))
    names = {
        c.get("tool_call_id"): c.get("function_name")
        for c in map(dict_or_empty, list_or_empty(step.get("tool_calls")))
        if isinstance(c.get("tool_call_id"), str)
    }
    built = []
    for result in map(dict_or_empty, results):
        call = text_or_none(result.get("source_call_id"))
        extras = without(result, "content", "source_call_id")
        author = text_or_none(names.get(call))
        built.append(
            Message(
                TOOL, content_text(result.get("content"))[0], author=author, result_of=call, extras=extras
            )
        )
    return built


def _call(raw: Any) -> ToolCall:
    call = as_dict(raw, "a tool call")
    if not isinstance(call.get("function_name"), str):
        raise ValueError("a tool call has no function_name")
    return ToolCall(
        call["function_name"], parse_arguments(call.get("arguments")), text_or_none(call.get("tool_call_id"))
    )


def _values(step: dict[str, Any], metrics: dict[str, Any]) -> dict[str, Any]:
    logprobs = list_or_empty(metrics.get("logprobs"))
    numbers = bool(logprobs) and all(type(p) in (int, float) for p in logprobs)
    reward = metrics.get("reward", dict_or_empty(metrics.get("extra")).get("reward"))
    values = {
        "behavior_logprob": sum(logprobs) if numbers else None,
        "tokens": metrics.get("completion_tokens"),
        "cost": metrics.get("cost_usd"),
        "timestamp": step.get("timestamp"),
        "reward": reward,
        "policy": text_or_none(step.get("model_name")),
    }
    return {k: v for k, v in values.items() if v is not None}
