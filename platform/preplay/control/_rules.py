"""What may not be executed whatever it scores: rules per risk class, decided on structure and never on substrings."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from preplay.logs import parse_action
from preplay.rewards import dangerous_calls

Verdict = Literal["allow", "review", "block"]
RISKS = ("dynamic_code", "shell", "file_deletion", "data_change")
_SQL_TEXT = re.compile(r"'(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.)*\"|--[^\n]*|/\*.*?\*/", re.S)
_SQL_CHANGE = re.compile(r"(?:^|;)\s*(insert|update|delete|drop|alter|truncate|create|replace|grant)\b", re.I)


@dataclass(frozen=True)
class Rule:
    """What happens to actions of a risk class."""

    risk: str
    verdict: Verdict

    def __post_init__(self):
        if self.risk not in RISKS:
            raise ValueError(f"no risk class {self.risk!r}; known: {', '.join(RISKS)}")


DEFAULT_RULES = tuple(Rule(risk, "block") for risk in RISKS)


@lru_cache(maxsize=1 << 14)
def risks_of(action: str) -> tuple[tuple[str, str], ...]:
    """(risk class, what was found) of an action; code and queries inside tool arguments are looked at, too."""
    found = [
        (call.risk, f"{call.name} in line {call.line}")
        for text in _texts(action)
        for call in dangerous_calls(text)
    ]
    for text in _texts(action):
        if change := _SQL_CHANGE.search(_SQL_TEXT.sub(" ", text)):
            found.append(("data_change", change[1].upper()))
    return tuple(dict.fromkeys(found))


def judge(action: str, rules: tuple[Rule, ...]) -> tuple[Verdict, str]:
    """The strictest verdict of the rules on an action, and why."""
    verdicts: dict[str, Verdict] = {rule.risk: rule.verdict for rule in rules}
    order: tuple[Verdict, ...] = ("block", "review", "allow")
    results: list[tuple[Verdict, str]] = [
        (verdicts.get(risk, "allow"), f"{risk}: {what}") for risk, what in risks_of(action)
    ]
    return min(results, key=lambda r: order.index(r[0]), default=("allow", ""))


def _texts(action: str) -> Iterator[str]:
    yield action
    _, calls = parse_action(action)
    for call in calls:
        yield from _strings(call.arguments)


def _strings(value: Any) -> Iterator[str]:
    stack = [value]
    while stack:
        node = stack.pop()
        if isinstance(node, str):
            yield node
        elif isinstance(node, dict | list):
            stack += node.values() if isinstance(node, dict) else node
