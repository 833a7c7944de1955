"""Conversations as turns: one turn per message of the agent, whatever the vendor's message format.

* task: the system prompt.
* observation: what stands between two messages of the agent (user texts, tool results), in order.
* action: the agent's text, then its tool calls as one JSON line, in order:
  ``{"tool_calls":[{"arguments":{…},"name":"…"}]}``. Arguments given as text are parsed where they are JSON.
* tool results: one JSON line each, ``{"tool_results":[{"content":"…","name":"…"}]}``.
* images: a JSON line ``{"image":"<URL, or sha256 of inline data>"}`` in place of the picture.
* reasoning blocks, call ids and every other field of a message: in ``extras``; nothing is lost.
* several agents: one session per agent (``id#agent``); the others' messages are observations.
"""

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from preplay.logs._records import canonical_json

AGENT, SYSTEM, USER, TOOL = "assistant", "system", "user", "tool"


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call of a tool by the agent; arguments are an object, or text that is no JSON."""

    name: str
    arguments: Any
    id: str | None = None

    @property
    def arguments_text(self) -> str:
        """The arguments as the vendors' APIs want them: JSON in a string."""
        return self.arguments if isinstance(self.arguments, str) else canonical_json(self.arguments)


@dataclass(slots=True)
class Message:
    """A message in any vendor's format, brought into one shape.

    ``author`` is the tool's name for tool results and the agent's name where several agents speak.
    ``extras`` holds every other field; ``values`` Turn fields that the message itself carries (reward …).
    """

    role: str
    text: str = ""
    tool_calls: list[ToolCall] = field(default_factory=list)
    author: str | None = None
    result_of: str | None = None
    extras: dict[str, Any] = field(default_factory=dict)
    values: dict[str, Any] = field(default_factory=dict)


def render_action(text: str, calls: Sequence[ToolCall]) -> str:
    """The agent's text and, on a last line of its own, its tool calls."""
    if not calls:
        return text
    block = canonical_json({"tool_calls": [{"name": c.name, "arguments": c.arguments} for c in calls]})
    return f"{text}\n{block}" if text else block


def parse_action(action: str) -> tuple[str, list[ToolCall]]:
    """The inverse of :func:`render_action`: text and tool calls (without their ids)."""
    text, _, last = action.rpartition("\n")
    if not last.startswith('{"tool_calls":['):
        return action, []
    try:
        calls = json.loads(last)["tool_calls"]
        return text, [ToolCall(c["name"], c["arguments"]) for c in calls]
    except (ValueError, KeyError, TypeError):
        return action, []


def parse_arguments(arguments: Any) -> Any:
    """Tool arguments as an object where they are one, also when logged as JSON text."""
    if not isinstance(arguments, str):
        return {} if arguments is None else arguments
    try:
        value = json.loads(arguments) if arguments.strip() else {}
    except (ValueError, RecursionError):
        return arguments
    return value if isinstance(value, dict | list) else arguments


def render_observation(messages: Sequence[Message]) -> str:
    """What the agent newly saw: texts as they are, tool results and other agents' words as JSON lines."""
    return "\n".join(_render(m) for m in messages)


def parse_observation(observation: str) -> tuple[list[str], str]:
    """The tool results of an observation, in order, and all that is none."""
    results, others = [], []
    for line in observation.split("\n"):
        found = _tool_results(line)
        if found is None:
            others.append(line)
        else:
            results += found
    return results, "\n".join(others)


def _tool_results(line: str) -> list[str] | None:
    if not line.startswith('{"tool_results":['):
        return None
    try:
        return [str(result["content"]) for result in json.loads(line)["tool_results"]]
    except (ValueError, KeyError, TypeError):
        return None


def _render(message: Message) -> str:
    if message.role == TOOL:
        result = {"content": message.text} | ({"name": message.author} if message.author else {})
        return canonical_json({"tool_results": [result]})
    if message.role == AGENT:
        return canonical_json(
            {"agent": message.author, "message": render_action(message.text, message.tool_calls)}
        )
    return message.text


def content_text(content: Any) -> tuple[str, dict[str, Any]]:
    """A message's content as text, and what of it belongs into extras (reasoning blocks)."""
    if content is None:
        return "", {}
    if isinstance(content, str):
        return content, {}
    if not isinstance(content, list):
        return canonical_json(content), {}
    texts, reasoning = [], []
    for part in content:
        kind = part.get("type") if isinstance(part, dict) else None
        if kind in ("thinking", "reasoning", "redacted_thinking"):
            reasoning.append(part)
        else:
            texts.append(_part_text(part, kind))
    return "\n".join(texts), {"reasoning": reasoning} if reasoning else {}


def _part_text(part: Any, kind: str | None) -> str:
    if isinstance(part, str):
        return part
    if not isinstance(part, dict):
        return canonical_json(part)
    for key in ("text", "content", "input_text", "output_text"):
        if isinstance(part.get(key), str) and kind in (None, "text", "input_text", "output_text", "refusal"):
            return part[key]
    if kind in ("image_url", "image", "input_image"):
        return canonical_json({"image": _image_reference(part)})
    return canonical_json(part)


def _image_reference(part: dict[str, Any]) -> Any:
    image = part.get("image_url", part.get("source", part.get("image")))
    value = image.get("url", image.get("data", image)) if isinstance(image, dict) else image
    if isinstance(value, str) and not value.startswith(("http://", "https://", "file:", "s3:", "gs:")):
        return "sha256:" + hashlib.sha256(value.encode("utf-8", "surrogatepass")).hexdigest()
    return value


def conversation_turns(messages: Sequence[Message]) -> Iterator[tuple[str | None, list[dict[str, Any]]]]:
    """Per agent (None when there is only one): the Turn values of its decisions, in order."""
    names = list(dict.fromkeys(m.author for m in messages if m.role == AGENT))
    for name in names:
        yield (name or AGENT if len(names) > 1 else None), _turns_of(messages, name)


def _turns_of(messages: Sequence[Message], agent: str | None) -> list[dict[str, Any]]:
    start = next((i for i, m in enumerate(messages) if m.role != SYSTEM), len(messages))
    task = "\n\n".join(m.text for m in messages[:start]) or None
    turns: list[dict[str, Any]] = []
    seen: list[Message] = []
    for message in messages[start:]:
        if message.role != AGENT or message.author != agent:
            seen.append(message)
            continue
        if turns:
            turns[-1]["next_observation"] = render_observation(seen)
        turns.append(_turn(message, seen, task, len(turns)))
        seen = []
    if turns:  # the record is the whole conversation: after its last message nothing was seen
        turns[-1]["next_observation"] = render_observation(seen)
        turns[-1]["extras"] |= _seen_extras(seen, "next_observation_messages")
    return turns


def _turn(message: Message, seen: list[Message], task: str | None, index: int) -> dict[str, Any]:
    """The first observation of a session without one is its task."""
    observation = render_observation(seen) or (task or "" if index == 0 else "")
    extras = dict(message.extras)
    if any(c.id for c in message.tool_calls):
        extras["tool_call_ids"] = [c.id for c in message.tool_calls]
    extras |= _seen_extras(seen, "observation_messages")
    action = render_action(message.text, message.tool_calls)
    own = {"turn": index, "task": task, "observation": observation, "action": action, "extras": extras}
    return own | message.values


def _seen_extras(seen: Sequence[Message], key: str) -> dict[str, Any]:
    details = [
        m.extras
        | ({"result_of": m.result_of} if m.result_of else {})
        | ({"role": m.role} if m.extras else {})
        for m in seen
    ]
    return {key: details} if any(details) else {}


def request_turn(request: Sequence[Message], answer: Message) -> dict[str, Any]:
    """The Turn values of one logged model call: its request holds the whole history, its answer the action.

    The observation is what follows the agent's last message in the request. The number of earlier messages
    goes to extras: calls of one session are told from each other by it.
    """
    start = next((i for i, m in enumerate(request) if m.role != SYSTEM), len(request))
    last = max((i for i, m in enumerate(request) if m.role == AGENT), default=start - 1)
    task = "\n\n".join(m.text for m in request[:start]) or None
    seen = list(request[max(last + 1, start) :])
    values = _turn(answer, seen, task, index=0 if last < start else 1)
    del values["turn"]
    values["extras"] = values["extras"] | {"history_messages": max(last + 1 - start, 0)}
    return values
