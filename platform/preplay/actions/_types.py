"""What an adapter makes of one action: the calls in it, with names and values told apart."""

from dataclasses import dataclass
from typing import Literal

Status = Literal["parsed", "partial", "broken", "text"]
STATUSES: tuple[Status, ...] = ("parsed", "partial", "broken", "text")
"""``parsed`` as a whole; ``partial``: some of it; ``broken``: meant as a call but not readable; ``text``: no call."""


@dataclass(frozen=True, slots=True)
class Call:
    """One use of a tool.

    Args:
        tool: What is used: ``select``, ``get_order_details``, ``goto``, ``ls``.
        arguments: Values: literals, record ids, texts.
        identifiers: Names that must exist in the environment: tables, columns, functions, paths.
    """

    tool: str
    arguments: tuple[str, ...] = ()
    identifiers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ParsedAction:
    """One action of the agent, taken apart.

    Args:
        calls: The calls in order; none for plain text.
        canonical: A form in which equal actions are equal: layout, comments and key order removed.
        status: How much of the action could be read.
    """

    calls: tuple[Call, ...]
    canonical: str
    status: Status

    @property
    def tool(self) -> str:
        """The distinct tools in order of first use, joined by ``+``; ``text`` where there is none."""
        return "+".join(dict.fromkeys(call.tool for call in self.calls)) or self.status


@dataclass(frozen=True, slots=True)
class OutcomeRule:
    """What an observation means.

    Args:
        pattern: Regular expression, searched in the observation (case ignored); its groups, where it has any,
            are names that the environment rejected.
        outcome: Class of the observation; classes that begin with ``error`` are errors.
    """

    pattern: str
    outcome: str
