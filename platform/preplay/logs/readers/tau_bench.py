"""tau-bench results: one JSON array, one conversation of agent, simulated user and tools per item."""

from collections.abc import Iterator
from typing import Any

from preplay.logs._files import LogFile
from preplay.logs._json_stream import JsonRecord, json_items, peek_head
from preplay.logs._messages import AGENT, Message
from preplay.logs._records import Quarantined, excerpt, hash_record
from preplay.logs._registry import Item, Sniff, register
from preplay.logs.readers._chat import chat_message, conversation_items

_STOP = "###STOP###"
_HAND_OVER = "transfer_to_human_agents"


@register
class TauBench:
    """``[{"task_id", "reward", "info", "traj", "trial"}]``; the reward is the last turn's."""

    name = "tau-bench"
    description = "tau-bench result files"
    example = (
        '[{"task_id": 0, "reward": 1.0, "trial": 0, "info": {"source": "user"}, "traj": [{"role": "system", '
        '"content": "You are an agent."}, {"role": "user", "content": "Hi"}, {"role": "assistant", '
        '"content": "Hello"}, {"role": "user", "content": "Bye ###STOP###"}]}]'
    )
    fields = "task_id, trial, reward, traj (chat messages with tool calls), info"
    quirks = (
        "policy from the file name; the user's stop word and the hand-over to a human end the session, else "
        "it is truncated; runs that failed (empty traj) are quarantined with their error"
    )
    splittable = False

    def sniff(self, path: str, head: bytes) -> Sniff:
        peek = peek_head(head)
        if peek.kind != "array":
            return Sniff(0, f"no JSON array ({peek.kind})")
        keys = ('"task_id"', '"reward"', '"traj"') if peek.first is None else ()
        found = isinstance(peek.first, dict) and {"task_id", "reward", "traj"} <= peek.first.keys()
        if found or (keys and all(k in peek.text for k in keys)):
            return Sniff(0.95, "items with task_id, reward and traj")
        return Sniff(0, "items without task_id, reward and traj")

    def read(self, file: LogFile) -> Iterator[Item]:
        for record in json_items(file):
            if isinstance(record, Quarantined):
                yield record
                continue
            source = file.where(record.line)
            try:
                yield from _conversation(record, file.name, source)
            except ValueError as error:
                yield Quarantined(source, "traj", str(error), excerpt(record.raw))


def _conversation(record: JsonRecord, policy: str, source: str) -> list[Item]:
    run = record.value
    if not isinstance(run, dict) or not isinstance(run.get("traj"), list):
        raise ValueError("no list traj")
    info = run.get("info")
    if not run["traj"]:
        error = info.get("error") if isinstance(info, dict) else None
        raise ValueError(f"an empty traj: the run failed ({str(error)[:80]})")
    messages = [chat_message(m) for m in run["traj"]]
    for message in messages:
        if message.role == AGENT:
            message.author = None
    ended = _has_ended(messages)
    common = {"policy": policy, "reward": run.get("reward"), "terminated": ended, "truncated": not ended}
    session_id = f"{policy}/{run.get('task_id')}/{run.get('trial', 0)}"
    left: dict[str, Any] = {k: v for k, v in run.items() if k not in ("traj", "reward")}
    return conversation_items(messages, session_id, common, left, (source, hash_record(record.raw)))


def _has_ended(messages: list[Message]) -> bool:
    """Whether the user stopped or the agent handed over; otherwise the step limit cut the session."""
    if messages[-1].role != AGENT and _STOP in messages[-1].text:
        return True
    decision = next((m for m in reversed(messages) if m.role == AGENT), None)
    return decision is not None and any(c.name == _HAND_OVER for c in decision.tool_calls)
