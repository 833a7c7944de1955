"""A state as an OpenAI-compatible conversation, and an answer as an action, in the form that logs are read in."""

from collections.abc import Sequence
from typing import Any

from preplay.logs import ToolCall, parse_action, parse_arguments, parse_observation, render_action
from preplay.policies._protocol import AgentState


def messages(state: AgentState, system: str | None, *, show_task: bool = True) -> list[dict[str, Any]]:
    """The agent's own actions are the assistant's; tool calls and their results keep their roles.

    Args:
        system: Put before the session's task.
        show_task: False leaves the logged task out, for a new system prompt instead of the old one.
    """
    task = state.task if show_task else None
    first = "\n\n".join(text for text in (system, task) if text)
    said: list[dict[str, Any]] = [{"role": "system", "content": first}] if first else []
    calls: list[dict[str, Any]] = []
    for turn, (observation, action) in enumerate(state.history):
        said += _seen(observation, calls)
        said.append(answer := _acted(action, turn))
        calls = answer.get("tool_calls", [])
    return said + _seen(state.observation, calls)


def action_of(message: dict[str, Any]) -> str:
    """The action that an assistant's message is: its text and its tool calls.

    Raises:
        ValueError: When the message holds neither.
    """
    content, called = message.get("content"), message.get("tool_calls") or []
    if not isinstance(content, str | None) or not (content or called):
        raise ValueError("no text and no tool call")
    functions = [call["function"] for call in called]
    return render_action(
        content or "", [ToolCall(f["name"], parse_arguments(f.get("arguments"))) for f in functions]
    )


def _acted(action: str, turn: int) -> dict[str, Any]:
    text, calls = parse_action(action)
    if not calls:
        return {"role": "assistant", "content": action}
    return {"role": "assistant", "content": text or None, "tool_calls": _numbered(calls, turn)}


def _numbered(calls: Sequence[ToolCall], turn: int) -> list[dict[str, Any]]:
    return [
        {
            "id": f"call_{turn}_{index}",
            "type": "function",
            "function": {"name": call.name, "arguments": call.arguments_text},
        }
        for index, call in enumerate(calls)
    ]


def _seen(observation: str, calls: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What the agent saw: results answer its calls in order; every call must have a result, so none is left out."""
    results, text = parse_observation(observation)
    if not calls:  # results of calls that the state no longer shows
        return [{"role": "user", "content": observation}]
    contents = [*results, *[""] * len(calls)][: len(calls)]
    said = [
        {"role": "tool", "tool_call_id": c["id"], "content": r} for c, r in zip(calls, contents, strict=True)
    ]
    text = "\n".join([*results[len(calls) :], *([text] if text else [])])
    return said + ([{"role": "user", "content": text}] if text else [])
