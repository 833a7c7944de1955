"""Anthropic Messages API conversations: content blocks, tool results inside user messages."""

from collections.abc import Iterator
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
    read_json_records,
    sniff_record,
    take,
    text_or_none,
    without,
)

_BLOCKS = ("tool_use", "tool_result", "thinking", "redacted_thinking", "server_tool_use")
_OPENAI = {"tool_calls", "function_call", "tool_call_id"}


@register
class AnthropicMessages:
    """``{"system", "messages", "response"?}`` per record."""

    name = "anthropic-messages"
    description = "Anthropic Messages API conversations"
    example = (
        '{"session_id": "c1", "model": "claude", "system": "Be kind.", "messages": [{"role": "user", '
        '"content": "Weather?"}, {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", '
        '"name": "weather", "input": {"city": "Bern"}}]}, {"role": "user", "content": [{"type": "tool_result", '
        '"tool_use_id": "t1", '
        '"content": "sunny"}]}, {"role": "assistant", "content": [{"type": "text", "text": "Sunny."}]}]}'
    )
    fields = "system, messages (role, content blocks), response (content, usage), model, session_id, reward"
    quirks = (
        "a user message may be tool results, in order with its text; input is an object; system as text or blocks; "
        "thinking goes to extras; is_error is kept"
    )
    splittable = True

    def sniff(self, path: str, head: bytes) -> Sniff:
        return sniff_record(head, _fits, 0.85, "messages with Anthropic content blocks or a system field")

    def read(self, file: LogFile) -> Iterator[Item]:
        yield from read_json_records(file, _conversation, "messages")


def _fits(record: dict[str, Any]) -> bool:
    messages = record.get("messages")
    if not isinstance(messages, list) or not all(isinstance(m, dict) and "role" in m for m in messages):
        return False
    if any(m["role"] in ("tool", "function", "developer") or _OPENAI & m.keys() for m in messages):
        return False
    kinds = {b.get("type") for m in messages for b in _blocks(m.get("content"))}
    apart = "system" in record and not any(m["role"] == "system" for m in messages)
    return bool(kinds & set(_BLOCKS)) or apart


def _blocks(content: Any) -> list[dict[str, Any]]:
    return [b for b in content if isinstance(b, dict)] if isinstance(content, list) else []


def _conversation(record: JsonRecord, source: str) -> list[Item]:
    left = dict(as_dict(record.value, "the record"))
    raw_messages = as_list(left.pop("messages", None), "messages")
    response = left.pop("response", None)
    if isinstance(response, dict):
        raw_messages = [*raw_messages, {"role": "assistant", **response}]
    messages = [m for raw in raw_messages for m in _messages(raw)]
    system = left.pop("system", None)
    if system:
        messages.insert(0, Message(SYSTEM, content_text(system)[0]))
    session_id = take(left, ("session_id", "conversation_id", "id"))
    common = {k: left.pop(k) for k in ("terminated", "truncated", "timestamp") if left.get(k) is not None}
    for key, names in (("policy", ("policy", "model")), ("reward", ("reward", "score"))):
        value = take(left, names)
        common |= {} if value is None else {key: value}
    place = (source, hash_record(record.raw))
    return conversation_items(messages, source if session_id is None else session_id, common, left, place)


def _messages(raw: Any) -> list[Message]:
    message = as_dict(raw, "a message")
    role, content = message.get("role"), message.get("content")
    if role == "assistant":
        return [_agent_message(message)]
    if role == "system":
        return [Message(SYSTEM, content_text(content)[0])]
    if role != "user":
        raise ValueError(f"a message has the unknown role {str(role)[:40]!r}")
    if not isinstance(content, list):
        return [Message(USER, content_text(content)[0])]
    return [_user_part(part) for part in content]


def _user_part(part: Any) -> Message:
    if isinstance(part, dict) and part.get("type") == "tool_result":
        extras = {"is_error": True} if part.get("is_error") else {}
        return Message(
            TOOL,
            content_text(part.get("content"))[0],
            result_of=text_or_none(part.get("tool_use_id")),
            extras=extras,
        )
    return Message(USER, content_text([part])[0])


def _agent_message(message: dict[str, Any]) -> Message:
    content = message.get("content")
    blocks = content if isinstance(content, list) else [content] if content is not None else []
    calls = [b for b in blocks if isinstance(b, dict) and b.get("type") == "tool_use"]
    text, extras = content_text([b for b in blocks if b not in calls])
    usage = dict_or_empty(message.get("usage"))
    tokens = usage.get("output_tokens")
    values = {"tokens": tokens} if isinstance(tokens, int) else {}
    extras = without(message, "role", "content", "id", "model", "type") | extras
    return Message(AGENT, text, [_call(b) for b in calls], extras=extras, values=values)


def _call(block: dict[str, Any]) -> ToolCall:
    if not isinstance(block.get("name"), str):
        raise ValueError("a tool_use block has no name")
    return ToolCall(block["name"], parse_arguments(block.get("input")), text_or_none(block.get("id")))
