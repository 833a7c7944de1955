"""Agent Data Protocol: a flat list of observations and actions per trajectory."""

from collections.abc import Iterator
from typing import Any

from preplay.logs._files import LogFile
from preplay.logs._json_stream import JsonRecord
from preplay.logs._messages import AGENT, TOOL, USER, Message, ToolCall, parse_arguments
from preplay.logs._records import canonical_json, hash_record
from preplay.logs._registry import Item, Sniff, register
from preplay.logs.readers._chat import conversation_items
from preplay.logs.readers._common import (
    as_dict,
    as_list,
    dict_or_empty,
    read_json_records,
    sniff_record,
    text_or_none,
    without,
)

_CODE_TOOL = "execute_"


@register
class AgentDataProtocol:
    """``{"id", "content": [{"class_": "text_observation" | "api_action" | …}], "details"}``."""

    name = "agent-data-protocol"
    description = "Agent Data Protocol (ADP) standardised trajectories"
    example = (
        '{"id": "t", "content": [{"class_": "text_observation", "content": "List the files", "source": "user"}, '
        '{"class_": "code_action", "language": "bash", "content": "ls", "description": null}, '
        '{"class_": "text_observation", "content": "a.py", "source": "environment"}, '
        '{"class_": "message_action", "content": "a.py"}], "details": {}}'
    )
    fields = "content (text/web/image observations; message, code and api actions), details, id"
    quirks = (
        "an api_action is a tool call, a code_action a call of execute_<language>; descriptions go before the call; "
        "web pages keep their accessibility tree, else their HTML; images stay references"
    )
    splittable = True

    def sniff(self, path: str, head: bytes) -> Sniff:
        def fits(record: dict[str, Any]) -> bool:
            content = record.get("content")
            return (
                isinstance(content, list)
                and bool(content)
                and isinstance(content[0], dict)
                and "class_" in content[0]
            )

        return sniff_record(head, fits, 0.95, "content of class_ entries")

    def read(self, file: LogFile) -> Iterator[Item]:
        yield from read_json_records(file, _trajectory, "content")


def _trajectory(record: JsonRecord, source: str) -> list[Item]:
    run = as_dict(record.value, "the record")
    messages = [_message(as_dict(e, "an entry")) for e in as_list(run.get("content"), "content")]
    details = dict_or_empty(run.get("details"))
    policy = text_or_none(details.get("model")) or text_or_none(details.get("agent"))
    common: dict[str, Any] = {"policy": policy} if policy else {}
    session_id = run.get("id")
    left = without(run, "content", "id")
    place = (source, hash_record(record.raw))
    return conversation_items(messages, source if session_id is None else session_id, common, left, place)


def _message(entry: dict[str, Any]) -> Message:
    kind, content = entry.get("class_"), entry.get("content")
    left = without(
        entry, "class_", "content", "function", "kwargs", "description", "language", "source", "reward"
    )
    values = {} if entry.get("reward") is None else {"reward": entry["reward"]}
    description = text_or_none(entry.get("description")) or ""
    if kind == "message_action":
        return Message(
            AGENT,
            _text(content),
            extras=left | ({"description": description} if description else {}),
            values=values,
        )
    if kind == "code_action":
        call = ToolCall(f"{_CODE_TOOL}{entry.get('language') or 'code'}", {"code": _text(content)})
        return Message(AGENT, description, [call], extras=left, values=values)
    if kind == "api_action":
        if not isinstance(entry.get("function"), str):
            raise ValueError("an api_action has no function")
        call = ToolCall(entry["function"], parse_arguments(entry.get("kwargs")))
        return Message(AGENT, description, [call], extras=left, values=values)
    return _observation(entry, str(kind))


def _observation(entry: dict[str, Any], kind: str) -> Message:
    if kind == "text_observation":
        role = USER if entry.get("source") == "user" else TOOL
        author = text_or_none(entry.get("name"))
        return Message(
            role,
            _text(entry.get("content")),
            author=author,
            extras=without(entry, "class_", "content", "source", "name"),
        )
    if kind == "image_observation":
        return Message(
            USER, canonical_json({"image": entry.get("content")}), extras=without(entry, "class_", "content")
        )
    if kind == "web_observation":
        page = entry.get("axtree") or entry.get("html") or entry.get("content")
        return Message(
            TOOL, _text(page), extras=without(entry, "class_", "axtree" if entry.get("axtree") else "html")
        )
    raise ValueError(f"an entry has the unknown class_ {kind[:40]!r}")


def _text(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else canonical_json(value)
