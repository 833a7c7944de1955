"""The adapters: one decorator registers them, an entry point adds a third party's, the logs choose among them.

A third party ships a class that satisfies :class:`ActionAdapter` and names it in its ``pyproject.toml``::

    [project.entry-points."preplay.action_adapters"]
    my-tools = "my_package.module:MyAdapter"
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from pkgutil import iter_modules
from typing import Protocol, TypeVar, runtime_checkable

from pydantic import BaseModel

from preplay.actions._types import OutcomeRule, ParsedAction
from preplay.errors import PreplayError

ENTRY_POINT_GROUP = "preplay.action_adapters"
PLAIN = "text"
_SURE = 0.5
_SAMPLE = 2000
_TALK = 0.8


@runtime_checkable
class ActionAdapter(Protocol):
    """Reads the actions of one tool family.

    ``parse`` never raises for what an action holds: what cannot be read comes back with status ``broken``.
    """

    name: str
    description: str
    outcome_rules: Sequence[OutcomeRule]
    """What this family's observations mean; asked before the general rules."""

    def recognise(self, action: str) -> float:
        """How sure the adapter is (0 no, 1 certain) that the action is its own; must be cheap."""
        ...

    def parse(self, action: str) -> ParsedAction:
        """The action taken apart."""
        ...


_ADAPTERS: dict[str, ActionAdapter] = {}
A = TypeVar("A")


def register_adapter(cls: type[A]) -> type[A]:
    """Class decorator: make an adapter known under its name."""
    _add(cls())
    return cls


def _add(adapter: object) -> None:
    if not isinstance(adapter, ActionAdapter):
        raise PreplayError(f"{type(adapter).__name__} does not satisfy the ActionAdapter protocol.")
    if adapter.name in _ADAPTERS:
        raise PreplayError(f"two action adapters are named {adapter.name!r}.")
    _ADAPTERS[adapter.name] = adapter


@contextmanager
def use_adapter(cls: type) -> Iterator[None]:
    """Make an adapter known for the length of a ``with`` block only."""
    adapter = cls()
    adapters()
    _add(adapter)
    try:
        yield
    finally:
        del _ADAPTERS[adapter.name]


@cache
def _load() -> None:
    package = import_module("preplay.actions.adapters")
    for module in iter_modules(package.__path__):
        import_module(f"{package.__name__}.{module.name}")
    for entry in entry_points(group=ENTRY_POINT_GROUP):
        if entry.name not in _ADAPTERS:
            _add(entry.load()())


def adapters() -> dict[str, ActionAdapter]:
    """All adapters by name, those of installed third parties included."""
    _load()
    return dict(sorted(_ADAPTERS.items()))


class AdapterShares(BaseModel):
    """Which tool families a dataset's actions belong to: share of distinct actions per adapter."""

    shares: dict[str, float]
    looked_at: int

    @property
    def main(self) -> str:
        """The family of most actions."""
        return max(self.shares, key=lambda name: self.shares[name])

    def sentence(self) -> str:
        """For the data card."""
        parts = sorted(self.shares.items(), key=lambda item: -item[1])
        return "Actions: " + ", ".join(f"{share:.0%} {name}" for name, share in parts if share >= 0.005) + "."


def choose_adapter(action: str, known: dict[str, ActionAdapter]) -> str:
    """The surest adapter's name; ``text`` when none is sure."""
    scores = {name: adapter.recognise(action) for name, adapter in known.items()}
    best = max(scores, key=lambda name: scores[name], default=PLAIN)
    return best if scores.get(best, 0.0) >= _SURE else PLAIN


def holds_tool_calls(actions: Iterable[str]) -> bool:
    """Whether a fifth or more of the distinct actions are tool calls: agents also talk to their users."""
    return detect_adapters(actions).shares.get(PLAIN, 0.0) <= _TALK


def detect_adapters(actions: Iterable[str]) -> AdapterShares:
    """Ask every adapter about an even sample of the distinct actions."""
    distinct = list(dict.fromkeys(actions))
    if not distinct:
        raise PreplayError("there are no actions to look at.")
    sample = distinct[:: max(1, len(distinct) // _SAMPLE)]
    known = adapters()
    counts = Counter(choose_adapter(action, known) for action in sample)
    shares = {name: counts[name] / len(sample) for name in [*known, PLAIN] if counts[name]}
    return AdapterShares(shares=shares, looked_at=len(sample))
