"""Tool calls as JSON: the Turn's canonical block, OpenAI, Anthropic and tau-bench shapes, one or several a turn."""

import ast
import json
import re
from collections.abc import Iterator
from typing import Any

from preplay.actions._registry import register_adapter
from preplay.actions._types import Call, OutcomeRule, ParsedAction
from preplay.logs import parse_action

_HINT = re.compile(
    r'"(?:tool_calls|function_call|tool_use|tool_name|arguments|kwargs|input|parameters|function)"\s*:'
)
_NAME = re.compile(r'"(?:name|tool|tool_name|function)"\s*:\s*"([^"\\]{1,80})"')
_NAME_KEYS = ("name", "tool", "tool_name", "function", "action")
_ARGUMENT_KEYS = ("arguments", "input", "kwargs", "parameters", "args", "action_input")
_LONGEST = 200_000


@register_adapter
class JsonCallAdapter:
    """Calls in an action's text; every leaf value of the arguments is an argument, their keys are not."""

    name = "json"
    description = "JSON tool calls (OpenAI, Anthropic, tau-bench)"
    outcome_rules = (
        OutcomeRule(r'"content":"(?:error|unknown action)[^"]*not found', "error: unknown name"),
        OutcomeRule(r'"content":"(?:error|unknown action)', "error: other"),
        OutcomeRule(r'"content":"(?:\[\]|\{\}|null|none)?"', "empty"),
        OutcomeRule(r'"content":"transfer successful', "refusal"),
        OutcomeRule(r'\A\{"tool_results":', "data"),
    )

    def recognise(self, action: str) -> float:
        return 0.95 if "{" in action and _HINT.search(action) else 0.0

    def parse(self, action: str) -> ParsedAction:
        _, calls = parse_action(action)
        found = [(c.name, c.arguments) for c in calls] or list(_calls(_values(action)))
        if not found:
            names = _NAME.findall(action[:_LONGEST])
            half = tuple(Call(name) for name in names)
            return ParsedAction(half, " ".join(action[:_LONGEST].split()), "broken")
        made = tuple(Call(name, tuple(_leaves(_arguments(given)))) for name, given in found)
        whole = all(isinstance(_arguments(given), dict | list) for _, given in found)
        canonical = json.dumps(
            [[n, _arguments(g)] for n, g in found], sort_keys=True, default=str, ensure_ascii=False
        )
        return ParsedAction(made, canonical, "parsed" if whole else "partial")


def _values(action: str) -> Iterator[Any]:
    """The JSON values in a text."""
    decoder, at = json.JSONDecoder(), 0
    action = action[:_LONGEST]
    tries = 0
    while (at := min((i for i in (action.find("{", at), action.find("[", at)) if i >= 0), default=-1)) >= 0:
        tries += 1
        if tries > 200:
            return
        try:
            value, at = decoder.raw_decode(action, at)
            yield value
        except (ValueError, RecursionError):
            at += 1


def _calls(values: Iterator[Any]) -> Iterator[tuple[str, Any]]:
    for value in values:
        yield from _calls_in(value)


def _calls_in(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, list):
        for item in value:
            yield from _calls_in(item)
    if not isinstance(value, dict):
        return
    for key in ("tool_calls", "function_call", "content"):
        if isinstance(value.get(key), list | dict):
            yield from _calls_in(value[key])
    inner = value.get("function")
    if isinstance(inner, dict):
        yield from _calls_in(inner)
        return
    name = next((value[k] for k in _NAME_KEYS if isinstance(value.get(k), str)), None)
    key = next((k for k in _ARGUMENT_KEYS if k in value), None)
    if name is not None and key is not None:
        yield name, value[key]


def _arguments(given: Any) -> Any:
    """Arguments as an object, also when they were logged as JSON or as a Python literal in a text."""
    if not isinstance(given, str):
        return {} if given is None else given
    try:
        return json.loads(given)
    except (ValueError, RecursionError):
        pass
    try:
        return ast.literal_eval(given) if given.lstrip()[:1] in ("{", "[") else given
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return given


def _leaves(value: Any, depth: int = 0) -> Iterator[str]:
    if isinstance(value, dict) and depth < 50:
        for item in value.values():
            yield from _leaves(item, depth + 1)
    elif isinstance(value, list | tuple | set) and depth < 50:
        for item in value:
            yield from _leaves(item, depth + 1)
    elif isinstance(value, str) and value[:1] in ("[", "{") and depth < 5:
        inner = _arguments(value)
        if isinstance(inner, str):
            yield inner
        else:
            yield from _leaves(inner, depth + 1)
    elif value is not None:
        yield str(value)
