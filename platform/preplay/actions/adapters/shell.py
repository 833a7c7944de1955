"""Shell commands, read by bashlex; what it cannot read is split into words, and said to be partial."""

import re
import shlex
from collections.abc import Iterator
from typing import Any

import bashlex
import bashlex.errors

from preplay.actions._registry import register_adapter
from preplay.actions._types import Call, OutcomeRule, ParsedAction

_COMMANDS = re.compile(
    r"(?:ls|cd|cat|echo|grep|find|sed|awk|head|tail|wc|mkdir|rm|mv|cp|touch|chmod|chown|git|pip|python3?|node|npm"
    r"|make|curl|wget|tar|ssh|export|source|sort|uniq|xargs|tee|diff|patch|du|df|ps|kill|which|pwd|env|sudo|apt"
    r"|docker|pytest|bash|sh|open|edit|goto|create|scroll_down|scroll_up|search_dir|search_file|find_file|submit"
    r"|nano|vim|unzip|gzip|nc|gdb|objdump|strings|file|tree)\Z"
)
_FENCE = re.compile(r"```(?:bash|sh|shell|console)\s*\n(.*?)(?:```|\Z)", re.DOTALL)
_FIRST = re.compile(r"\s*(?:\$ )?(?:\w+=\S+ )*([\w./-]+)")
_LONGEST = 20_000
_PROBLEMS = (
    bashlex.errors.ParsingError,
    NotImplementedError,
    ValueError,
    TypeError,
    AttributeError,
    IndexError,
    AssertionError,
    RecursionError,
)
"""What bashlex raises on real commands: its own error, and unfinished corners of its grammar."""


@register_adapter
class ShellAdapter:
    """Command lines; the command is the tool, options and words are arguments, paths are identifiers."""

    name = "shell"
    description = "shell commands (bashlex)"
    outcome_rules = (
        OutcomeRule(r"([\w./-]+): (?:command )?not found", "error: unknown name"),
        OutcomeRule(r"['\"]?([\w./-]+)['\"]?: No such file or directory", "error: unknown name"),
        OutcomeRule(r"syntax error near|unexpected (?:EOF|token)", "error: syntax"),
        OutcomeRule(r"permission denied|operation not permitted", "refusal"),
    )

    def recognise(self, action: str) -> float:
        if _FENCE.search(action):
            return 0.9
        first = _FIRST.match(action)
        if not first or not _COMMANDS.match(first[1].split("/")[-1]):
            return 0.0
        return 0.7 if action.count("\n") < 20 else 0.55

    def parse(self, action: str) -> ParsedAction:
        fenced = _FENCE.findall(action)
        text = ("\n".join(fenced) if fenced else action).strip().removeprefix("$ ")[:_LONGEST]
        try:
            calls = tuple(call for tree in bashlex.parse(text) for call in _commands(tree))
        except _PROBLEMS:
            return _by_words(text)
        return ParsedAction(calls, _canonical(calls), "parsed" if calls else "text")


def _commands(node: Any) -> Iterator[Call]:
    if node.kind == "command":
        words = [part.word for part in node.parts if part.kind == "word"]
        paths = [
            part.output.word
            for part in node.parts
            if part.kind == "redirect" and hasattr(part.output, "word")
        ]
        if words:
            yield _call(words, paths)
    for part in getattr(node, "parts", []) or getattr(node, "list", []):
        yield from _commands(part)
    if hasattr(node, "command"):
        yield from _commands(node.command)


def _call(words: list[str], paths: list[str]) -> Call:
    names = [w for w in words[1:] if not w.startswith("-") and ("/" in w or "." in w)]
    values = [w for w in words[1:] if w not in names]
    return Call(words[0].split("/")[-1], tuple(values), tuple(dict.fromkeys([*names, *paths])))


def _by_words(text: str) -> ParsedAction:
    """One call per line or pipe part, split as a shell would split words, or at blanks."""
    calls = []
    for part in re.split(r"[|;&\n]+", text):
        try:
            words = shlex.split(part)
        except ValueError:
            words = part.split()
        if words:
            calls.append(_call(words, []))
    return ParsedAction(tuple(calls), " ".join(text.split()), "partial" if calls else "broken")


def _canonical(calls: tuple[Call, ...]) -> str:
    return "\n".join(" ".join([c.tool, *c.arguments, *c.identifiers]) for c in calls)
