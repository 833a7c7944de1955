"""Request and answer of a model call from span attributes and events, in each convention that exists."""

from collections.abc import Callable
from typing import Any

from preplay.logs._messages import AGENT, SYSTEM, TOOL, USER, Message, ToolCall, content_text, parse_arguments
from preplay.logs._records import canonical_json
from preplay.logs.readers._chat import chat_message
from preplay.logs.readers._common import as_dict, dict_or_empty, list_or_empty, text_or_none
from preplay.logs.readers._otel_spans import Span, indexed

Call = tuple[list[Message], list[Message]]
"""Messages of the request and of the answer."""


def model_call(span: Span) -> Call | None:
    """Request and answer, from the first convention that has an answer; None when none has."""
    for convention in _CONVENTIONS:
        request, answer = convention(span)
        if answer:
            return request, answer
    return None


def _semantic_conventions(span: Span) -> Call:
    """``gen_ai.input.messages`` and ``gen_ai.output.messages``, as JSON text or structured, on span or event."""
    sources = [span.attributes, *(a for _, a in span.events)]
    found = next((a for a in sources if a.get("gen_ai.output.messages")), {})
    request = _parts_messages(found.get("gen_ai.input.messages"))
    system = parse_arguments(found.get("gen_ai.system_instructions"))
    if system:
        request.insert(0, Message(SYSTEM, _system_text(system)))
    return request, _parts_messages(found.get("gen_ai.output.messages"))


def _system_text(system: Any) -> str:
    if isinstance(system, list):
        return content_text(
            [
                {"type": "text", "text": p["content"]}
                if isinstance(p, dict) and isinstance(p.get("content"), str)
                else p
                for p in system
            ]
        )[0]
    return content_text(system)[0]


def _parts_messages(raw: Any) -> list[Message]:
    return [
        m for item in list_or_empty(parse_arguments(raw)) for m in _parts_message(as_dict(item, "a message"))
    ]


def _parts_message(raw: dict[str, Any]) -> list[Message]:
    if not isinstance(raw.get("parts"), list):
        return [chat_message(raw)]
    role = {"assistant": AGENT, "system": SYSTEM, "tool": TOOL}.get(str(raw.get("role")), USER)
    parts = [as_dict(p, "a part") for p in raw["parts"]]
    results = [p for p in parts if p.get("type") == "tool_call_response"]
    built = [
        Message(TOOL, _as_text(p.get("result", p.get("response"))), result_of=text_or_none(p.get("id")))
        for p in results
    ]
    calls = [
        _named_call(p.get("name"), p.get("arguments"), p.get("id"))
        for p in parts
        if p.get("type") == "tool_call"
    ]
    reasoning = [p for p in parts if p.get("type") == "reasoning"]
    texts = [p for p in parts if p not in results and p not in reasoning and p.get("type") != "tool_call"]
    text = "\n".join(_part_text(p) for p in texts)
    if texts or calls or not built:
        built.append(Message(role, text, calls, extras={"reasoning": reasoning} if reasoning else {}))
    return built


def _part_text(part: dict[str, Any]) -> str:
    return (
        part["content"]
        if isinstance(part.get("content"), str) and part.get("type") == "text"
        else content_text([part])[0]
    )


def _events(span: Span) -> Call:
    """One span event per message, ``gen_ai.choice`` for the answer."""
    request, answer = [], []
    for name, body in span.events:
        if name == "gen_ai.choice":
            message = parse_arguments(body.get("message")) if body.get("message") else body
            answer.append(_event_message(dict_or_empty(message), AGENT))
        elif name in ("gen_ai.content.prompt", "gen_ai.content.completion"):
            key = name.replace("content.", "")
            (request if name.endswith("prompt") else answer).extend(
                _json_messages(body.get(key), USER if name.endswith("prompt") else AGENT)
            )
        elif name.startswith("gen_ai.") and name.endswith(".message"):
            request.append(_event_message(body, name.split(".")[1]))
    return request, answer


def _event_message(body: dict[str, Any], role: str) -> Message:
    calls = parse_arguments(body.get("tool_calls")) if body.get("tool_calls") else None
    message = {"role": role, "content": body.get("content"), "tool_calls": calls}
    return chat_message(message | ({"tool_call_id": body["id"]} if isinstance(body.get("id"), str) else {}))


def _flat(span: Span) -> Call:
    """``gen_ai.prompt.N.*`` and ``gen_ai.completion.N.*`` (OpenLLMetry, Traceloop)."""
    request = [chat_message({"role": "user"} | m) for m in indexed(span.attributes, "gen_ai.prompt")]
    answer = [chat_message({"role": "assistant"} | m) for m in indexed(span.attributes, "gen_ai.completion")]
    return request, answer


def _json_text(span: Span) -> Call:
    """``gen_ai.prompt`` and ``gen_ai.completion`` as JSON text."""
    a = span.attributes
    return _json_messages(a.get("gen_ai.prompt"), USER), _json_messages(a.get("gen_ai.completion"), AGENT)


def _json_messages(raw: Any, role: str) -> list[Message]:
    value = parse_arguments(raw) if raw is not None else None
    if isinstance(value, dict):
        value = value.get("messages", [value])
    if isinstance(value, list):
        return [chat_message({"role": role} | as_dict(m, "a message")) for m in value]
    return [] if value is None else [Message(role, _as_text(value))]


def _open_inference(span: Span) -> Call:
    """``llm.input_messages.N.message.*`` and ``llm.output_messages.N.message.*``."""
    read = [
        [
            _inference_message(dict_or_empty(m.get("message")))
            for m in indexed(span.attributes, f"llm.{side}_messages")
        ]
        for side in ("input", "output")
    ]
    return read[0], read[1]


def _inference_message(raw: dict[str, Any]) -> Message:
    calls = [dict_or_empty(dict_or_empty(c).get("tool_call")) for c in list_or_empty(raw.get("tool_calls"))]
    parts = [
        dict_or_empty(dict_or_empty(p).get("message_content")) for p in list_or_empty(raw.get("contents"))
    ]
    images = {
        "image": lambda p: {
            "type": "image",
            "image": dict_or_empty(dict_or_empty(p.get("image")).get("image")).get("url"),
        }
    }
    content = (
        raw.get("content")
        if raw.get("content") is not None or not parts
        else [images["image"](p) if p.get("type") == "image" else p for p in parts]
    )
    names = {k: raw[k] for k in ("tool_call_id",) if isinstance(raw.get(k), str)}
    if raw.get("role") == "tool" and isinstance(raw.get("name"), str):
        names["name"] = raw["name"]
    return chat_message({"role": raw.get("role"), "content": content, "tool_calls": calls} | names)


def _vercel(span: Span) -> Call:
    """``ai.prompt.messages`` and ``ai.response.text`` / ``ai.response.toolCalls`` of the Vercel AI SDK."""
    a = span.attributes
    text = a.get("ai.response.text", a.get("ai.result.text"))
    calls = list_or_empty(parse_arguments(a.get("ai.response.toolCalls", a.get("ai.result.toolCalls"))))
    made = [_vercel_call(as_dict(c, "a tool call")) for c in calls]
    answer = [Message(AGENT, text_or_none(text) or "", made)] if made or isinstance(text, str) else []
    raw = list_or_empty(parse_arguments(a.get("ai.prompt.messages")))
    return [m for item in raw for m in _vercel_message(as_dict(item, "a message"))], answer


def _vercel_message(raw: dict[str, Any]) -> list[Message]:
    parts = raw.get("content")
    if not isinstance(parts, list):
        return [chat_message(raw)]
    results = [p for p in map(dict_or_empty, parts) if p.get("type") == "tool-result"]
    calls = [p for p in map(dict_or_empty, parts) if p.get("type") == "tool-call"]
    others = [p for p in parts if p not in results and p not in calls]
    built = [
        Message(
            TOOL,
            _as_text(p.get("result", p.get("output"))),
            author=text_or_none(p.get("toolName")),
            result_of=text_or_none(p.get("toolCallId")),
        )
        for p in results
    ]
    if others or calls or not built:
        message = chat_message({"role": raw.get("role"), "content": others})
        message.tool_calls = [_vercel_call(c) for c in calls]
        built.append(message)
    return built


def _vercel_call(raw: dict[str, Any]) -> ToolCall:
    return _named_call(raw.get("toolName"), raw.get("args", raw.get("input")), raw.get("toolCallId"))


def _named_call(name: Any, arguments: Any, identity: Any) -> ToolCall:
    if not isinstance(name, str):
        raise ValueError("a tool call has no name")
    return ToolCall(name, parse_arguments(arguments), text_or_none(identity))


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else canonical_json(value)


_CONVENTIONS: tuple[Callable[[Span], Call], ...] = (
    _semantic_conventions,
    _open_inference,
    _vercel,
    _flat,
    _events,
    _json_text,
)
