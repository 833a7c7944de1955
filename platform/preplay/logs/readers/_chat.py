"""OpenAI-style chat messages, shared by every format that stores them."""

from typing import Any

from preplay.logs._messages import (
    AGENT,
    SYSTEM,
    TOOL,
    USER,
    Message,
    ToolCall,
    content_text,
    conversation_turns,
    parse_arguments,
)
from preplay.logs._records import Quarantined, RawTurn, excerpt
from preplay.logs._registry import Item

_ROLES = {
    "assistant": AGENT,
    "ai": AGENT,
    "model": AGENT,
    "system": SYSTEM,
    "developer": SYSTEM,
    "user": USER,
    "human": USER,
    "tool": TOOL,
    "function": TOOL,
}
_KNOWN = {"role", "content", "tool_calls", "function_call", "name", "tool_call_id", "reward"}


def chat_message(raw: Any) -> Message:
    """One chat message; ValueError says what is wrong with it."""
    if not isinstance(raw, dict):
        raise ValueError(f"a message is a {type(raw).__name__}, not an object")
    role = _ROLES.get(raw["role"]) if isinstance(raw.get("role"), str) else None
    if role is None:
        raise ValueError(f"a message has the unknown role {str(raw.get('role'))[:40]!r}")
    text, extras = content_text(raw.get("content"))
    left = {k: v for k, v in raw.items() if k not in _KNOWN and v not in (None, [], {})}
    return Message(
        role,
        text,
        _tool_calls(raw) if role == AGENT else [],
        author=raw.get("name") if isinstance(raw.get("name"), str) else None,
        result_of=raw.get("tool_call_id") if isinstance(raw.get("tool_call_id"), str) else None,
        extras=left | extras,
        values={"reward": raw["reward"]} if role == AGENT and raw.get("reward") is not None else {},
    )


def _tool_calls(raw: dict[str, Any]) -> list[ToolCall]:
    calls = raw.get("tool_calls") or []
    if not isinstance(calls, list):
        raise ValueError("tool_calls is no list")
    if isinstance(raw.get("function_call"), dict):  # the form before tool_calls
        calls = [*calls, {"function": raw["function_call"]}]
    return [_tool_call(call) for call in calls]


def _tool_call(call: Any) -> ToolCall:
    function = call.get("function", call) if isinstance(call, dict) else None
    if not isinstance(function, dict) or not isinstance(function.get("name"), str):
        raise ValueError("a tool call has no function name")
    identity = call.get("id")
    return ToolCall(
        function["name"],
        parse_arguments(function.get("arguments")),
        identity if isinstance(identity, str) else None,
    )


def conversation_items(
    messages: list[Message],
    session_id: Any,
    common: dict[str, Any],
    extras: dict[str, Any],
    place: tuple[str, str],
) -> list[Item]:
    """The items of one conversation: ``common`` values on every turn, the session's reward on the last one.

    ``place`` is the record's source and hash.
    """
    source, digest = place
    items: list[Item] = []
    for agent, turns in conversation_turns(messages):
        suffix = f"#{agent}" if agent else ""
        name = f"{session_id}{suffix}" if agent else session_id
        last = {k: common[k] for k in ("reward", "terminated", "truncated") if k in common}
        first = {k: v for k, v in common.items() if k not in last}
        for i, turn in enumerate(turns):
            values = first | turn | (last if i == len(turns) - 1 else {})
            own = values.pop("extras")
            if agent:
                own = own | {"agent": agent}
            items.append(RawTurn(name, values, source + suffix, digest, own | (extras if i == 0 else {})))
    if not items:
        items.append(Quarantined(source, "messages", "no message of the agent", excerpt(repr(messages))))
    return items
