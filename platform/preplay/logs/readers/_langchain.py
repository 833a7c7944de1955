"""LangChain messages in the forms that traces hold them."""

from typing import Any

from preplay.logs._messages import AGENT, SYSTEM, TOOL, USER, Message
from preplay.logs.readers._chat import chat_message
from preplay.logs.readers._common import as_dict

_TYPES = {
    "human": "user",
    "ai": "assistant",
    "AIMessageChunk": "assistant",
    "system": "system",
    "tool": "tool",
    "function": "tool",
    "chat": "user",
}
_ROLES = (AGENT, SYSTEM, USER, TOOL)


def langchain_message(raw: Any) -> Message:
    """A message as OpenAI's, as ``{"lc": 1, "kwargs"}``, as ``{"type", "data"}`` or as ``{"type", "content"}``."""
    if isinstance(raw, list) and len(raw) == 2 and isinstance(raw[0], str):  # ("human", "text")
        return chat_message({"role": _TYPES.get(raw[0], raw[0]), "content": raw[1]})
    message = as_dict(raw, "a message")
    if isinstance(message.get("kwargs"), dict):
        inner = message["kwargs"]
        kind = inner.get("type") or _from_class(message.get("id"))
    else:
        inner = message["data"] if isinstance(message.get("data"), dict) else message
        kind = message.get("type") or inner.get("type")
    if isinstance(inner.get("role"), str):
        return chat_message(inner)
    if not isinstance(kind, str) or kind not in _TYPES:
        raise ValueError(f"a message has the unknown type {str(kind)[:40]!r}")
    return chat_message(_as_chat(inner, _TYPES[kind]))


def _from_class(identity: Any) -> str | None:
    """``["langchain", "schema", "messages", "HumanMessage"]`` → human."""
    if not isinstance(identity, list) or not identity or not isinstance(identity[-1], str):
        return None
    return identity[-1].removesuffix("Chunk").removesuffix("Message").lower()


def _as_chat(inner: dict[str, Any], role: str) -> dict[str, Any]:
    additional = inner.get("additional_kwargs")
    calls = inner.get("tool_calls")
    if not calls and isinstance(additional, dict):
        calls = additional.get("tool_calls")
    if isinstance(calls, list):
        calls = [_call(c) for c in calls]
    message = {"role": role, "content": inner.get("content"), "tool_calls": calls}
    for name in ("name", "tool_call_id"):
        if isinstance(inner.get(name), str) and not (name == "name" and role == "assistant"):
            message[name] = inner[name]
    return message


def _call(raw: Any) -> Any:
    """LangChain's ``{"name", "args", "id"}`` as OpenAI's call; other forms as they are."""
    if isinstance(raw, dict) and "args" in raw:
        return {"id": raw.get("id"), "function": {"name": raw.get("name"), "arguments": raw["args"]}}
    return raw
