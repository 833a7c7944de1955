"""tau2-bench results: one JSON object per file with the simulations of one run."""

from collections.abc import Iterator
from typing import Any

from preplay.logs._files import LogFile
from preplay.logs._json_stream import json_document, peek_head
from preplay.logs._messages import AGENT, Message
from preplay.logs._records import Quarantined, excerpt, hash_record
from preplay.logs._registry import Item, Sniff, register
from preplay.logs.readers._chat import chat_message, conversation_items
from preplay.logs.readers._common import as_dict, as_list, dict_or_empty, text_or_none, without

_ENDED = ("user_stop", "agent_stop")
_KEYS = ('"simulations"', '"termination_reason"', '"reward_info"', '"agent_info"')


@register
class Tau2:
    """``{"info", "tasks", "simulations": [{"messages", "reward_info", "termination_reason"}]}``."""

    name = "tau2"
    description = "tau2-bench result files"
    example = (
        '{"info": {"agent_info": {"llm": "gpt-4o"}, "environment_info": {"policy": "Be kind."}}, "tasks": [], '
        '"simulations": [{"id": "s", "task_id": "1", "trial": 0, "termination_reason": "user_stop", '
        '"reward_info": {"reward": 1.0}, "messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", '
        '"content": "Hello"}, {"role": "user", "content": "###STOP###"}]}]}'
    )
    fields = "simulations (messages, reward_info, termination_reason, task_id, trial), info.agent_info"
    quirks = (
        "tools the user calls are shown to the agent's log as user steps; multi-tool messages; requestor; "
        "max_steps and too_many_errors are truncations; simulations without a reward stay unrewarded"
    )
    splittable = False

    def sniff(self, path: str, head: bytes) -> Sniff:
        peek = peek_head(head)
        if peek.kind not in ("object", "jsonl"):
            return Sniff(0, f"no JSON object ({peek.kind})")
        first = peek.first if isinstance(peek.first, dict) else {}
        if isinstance(first.get("simulations"), list):
            return Sniff(0.95, "a list of simulations")
        if peek.first is None and '"agent_info"' in peek.text and '"user_info"' in peek.text:
            return Sniff(0.8, "the beginning of a run's info")
        return Sniff(0, "no list of simulations")

    def read(self, file: LogFile) -> Iterator[Item]:
        for record in json_document(file):
            if isinstance(record, Quarantined):
                yield record
                continue
            try:
                run = as_dict(record.value, "the file")
                simulations = as_list(run.get("simulations"), "simulations")
            except ValueError as error:
                yield Quarantined(file.where(1), "simulations", str(error), excerpt(record.raw))
                continue
            for i, simulation in enumerate(simulations):
                yield from _checked(simulation, run, file, i)


def _checked(simulation: Any, run: dict[str, Any], file: LogFile, index: int) -> list[Item]:
    source = file.where(f"simulations/{index}")
    try:
        return _session(as_dict(simulation, "a simulation"), run, file, source)
    except ValueError as error:
        return [Quarantined(source, "messages", str(error), excerpt(simulation))]


def _session(simulation: dict[str, Any], run: dict[str, Any], file: LogFile, source: str) -> list[Item]:
    info = dict_or_empty(run.get("info"))
    policy = text_or_none(dict_or_empty(info.get("agent_info")).get("llm")) or file.name
    rules = text_or_none(dict_or_empty(info.get("environment_info")).get("policy"))
    messages = [m for raw in as_list(simulation.get("messages"), "messages") for m in _messages(raw)]
    if rules and not any(m.role == "system" for m in messages):
        messages.insert(0, Message("system", rules))
    ended = simulation.get("termination_reason") in _ENDED
    common = {
        "policy": policy,
        "reward": dict_or_empty(simulation.get("reward_info")).get("reward"),
        "terminated": ended,
        "truncated": not ended,
    }
    session_id = simulation.get("id") or f"{file.name}/{simulation.get('task_id')}/{simulation.get('trial')}"
    left = without(simulation, "messages", "id")
    return conversation_items(messages, session_id, common, left, (source, hash_record(simulation)))


def _messages(raw: Any) -> list[Message]:
    """One logged message; a multi-tool message holds several results."""
    message = as_dict(raw, "a message")
    if isinstance(message.get("tool_messages"), list):
        return [m for part in message["tool_messages"] for m in _messages(part)]
    built = chat_message(message)
    if built.role == AGENT:
        built.author = None
        built.values |= {"timestamp": message.get("timestamp"), "cost": message.get("cost")}
    built.extras = {k: v for k, v in built.extras.items() if k not in ("timestamp", "cost", "turn_idx")}
    return [built]
