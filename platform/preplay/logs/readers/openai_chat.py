"""OpenAI chat-completions conversations, one per line."""

from collections.abc import Iterator
from typing import Any

from preplay.logs._files import LogFile
from preplay.logs._json_stream import JsonRecord, json_lines, peek_head
from preplay.logs._records import Quarantined, excerpt, hash_record
from preplay.logs._registry import Item, Sniff, register
from preplay.logs.readers._chat import chat_message, conversation_items

_SESSION = ("session_id", "conversation_id", "thread_id", "trace_id", "id")
_POLICY = ("policy", "agent", "model")
_REWARD = ("reward", "score")
_COPIED = ("terminated", "truncated", "cost", "latency_s", "timestamp")


def take(record: dict[str, Any], names: tuple[str, ...]) -> Any:
    """Remove and return the first of several fields that is there."""
    return next((record.pop(name) for name in names if record.get(name) is not None), None)


@register
class OpenAIChat:
    """``{"messages": [...]}`` per line, tool calls included."""

    name = "openai-chat"
    description = "OpenAI chat-completions conversations with tool calls, one per line"
    example = (
        '{"session_id": "c1", "model": "gpt-4o", "reward": 1.0, "messages": [{"role": "user", "content": "Hi"}, '
        '{"role": "assistant", "content": null, "tool_calls": [{"id": "x", "type": "function", '
        '"function": {"name": "lookup", "arguments": "{\\"q\\": \\"Hi\\"}"}}]}, '
        '{"role": "tool", "tool_call_id": "x", "content": "found"}, {"role": "assistant", "content": "Done"}]}'
    )
    fields = "session_id, model, reward, messages (role, content, tool_calls, function_call, name, reward)"
    quirks = (
        "arguments as text; function_call; parts lists and images; developer prompts; several agents by name; "
        "a request with its response's choices"
    )
    splittable = True

    def sniff(self, path: str, head: bytes) -> Sniff:
        peek = peek_head(head)
        if peek.kind != "jsonl":
            return Sniff(0, f"not JSON lines ({peek.kind})")
        messages = peek.first.get("messages")
        if not isinstance(messages, list):
            return Sniff(0, "no list of messages in the first record")
        if not all(isinstance(m, dict) and "role" in m for m in messages):
            return Sniff(0, "messages without a role")
        return Sniff(0.7, "a list of messages with roles")

    def read(self, file: LogFile) -> Iterator[Item]:
        for record in json_lines(file):
            if isinstance(record, Quarantined):
                yield record
                continue
            source = file.where(record.line)
            try:
                yield from _conversation(record, source)
            except ValueError as error:
                yield Quarantined(source, "messages", str(error), excerpt(record.raw))


def _conversation(record: JsonRecord, source: str) -> list[Item]:
    left = dict(record.value)
    raw_messages = left.pop("messages", None)
    if not isinstance(raw_messages, list):
        raise ValueError("no list of messages")
    messages = [chat_message(m) for m in [*raw_messages, *_answers(left)]]
    session_id = take(left, _SESSION)
    common = {k: left.pop(k) for k in _COPIED if left.get(k) is not None}
    for key, names in (("policy", _POLICY), ("reward", _REWARD)):
        value = take(left, names)
        common |= {} if value is None else {key: value}
    place = (source, hash_record(record.raw))
    return conversation_items(messages, source if session_id is None else session_id, common, left, place)


def _answers(record: dict[str, Any]) -> list[Any]:
    """The message of a logged completion that stands beside its request."""
    response = record.get("response", record)
    choices = response.get("choices") if isinstance(response, dict) else None
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        return []
    return [choices[0]["message"]] if "message" in choices[0] else []
