"""Feature blocks of turns taken apart that do not depend on whose knowledge counts: what went before, what is done.

R turns. Nothing here knows rewards, the length of a session, or later turns.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from preplay.actions._grounding import Grounding
from preplay.actions._structure import StructuredTurns
from preplay.actions._types import STATUSES

_RARE = 0.005
_GOOD = ("data", "empty", "confirmation", "other")


@dataclass(frozen=True)
class Columns:
    """The tools and outcomes that have a feature of their own, fixed on the logs that are learned from."""

    tools: tuple[str, ...]
    outcomes: tuple[str, ...]

    @classmethod
    def of(cls, turns: StructuredTurns) -> "Columns":
        """All outcomes, and the words of tool names that are not rare."""
        count = np.bincount(turns.tool, minlength=len(turns.tools))
        total: Counter[str] = Counter()
        for name, n in zip(turns.tools, count.tolist(), strict=True):
            total.update(dict.fromkeys(_words(name), n))
        common = tuple(w for w, n in sorted(total.items()) if n >= _RARE * len(turns))
        return cls(common, tuple(turns.outcomes))

    def tool_bag(self, names: Sequence[str]) -> np.ndarray:
        """float64 [N, ·]: which tools (words of their names) an action uses."""
        bags = [_words(name) for name in names]
        return np.array([[w in bag for w in self.tools] for bag in bags], np.float64).reshape(len(bags), -1)

    def outcome(self, names: Sequence[str]) -> np.ndarray:
        """float64 [N, ·]: 1 for the class of an observation; nothing for an unknown one."""
        return np.array([[n == o for o in self.outcomes] for n in names], np.float64).reshape(len(names), -1)


def _words(tool: str) -> set[str]:
    return set(tool.replace("+", " ").split())


def is_good(outcomes: Sequence[str]) -> np.ndarray:
    """bool [N]: which classes of observations show that an action worked."""
    return np.isin(np.array(outcomes), _GOOD)


@dataclass(frozen=True)
class Blocks:
    """Feature blocks, float64 [R, ·].

    ``state`` (known before acting), ``tool`` (what is called), and of what followed: ``good`` bool [R], ``outcome``.
    """

    state: np.ndarray
    tool: np.ndarray
    good: np.ndarray
    outcome: np.ndarray

    def with_grounding(self, grounding: Grounding) -> np.ndarray:
        """float64 [R, ·]: what an action is built on."""
        return np.column_stack([self.state, self.tool, grounding.features, all_known(grounding.features)])


def all_known(grounding: np.ndarray) -> np.ndarray:
    """bool [R]: whether an action has names and none of them is unknown."""
    found = Grounding(grounding)
    return (found["names_unknown"] == 0) & (found["names"] > 0)


def make_blocks(turns: StructuredTurns, columns: Columns | None = None) -> Blocks:
    """Blocks of every turn; by default the columns are those of the turns themselves."""
    columns = columns or Columns.of(turns)
    first = np.flatnonzero(turns.turn == 0)
    good = is_good(turns.outcomes)[turns.outcome]
    outcome = columns.outcome(turns.outcomes)[turns.outcome]
    before = np.vstack([np.zeros((1, outcome.shape[1])), outcome[:-1]]) * (turns.turn > 0)[:, None]
    tools = columns.tool_bag(turns.tools)[turns.tool]
    shown = np.bincount(turns.facts.row, minlength=len(turns)).astype(np.float64)
    running = np.column_stack([good, turns.error, tools, shown])
    past = np.cumsum(running, 0) - running
    past -= past[first][turns.session]
    mentions = [np.bincount(p.row, minlength=len(turns)) for p in (turns.names, turns.values)]
    return Blocks(
        state_block(turns.turn, before, past),
        tool_block(tools, turns.status, turns.calls, *mentions),
        good,
        outcome,
    )


def state_block(turn: np.ndarray, before: np.ndarray, past: np.ndarray) -> np.ndarray:
    """What is known before acting, float64 [B, ·].

    Args:
        turn: int64 [B]; ``before``: float64 [B, ·] outcome of the last action.
        past: float64 [B, ·] numbers of useful answers, of errors, of uses of each tool, of facts seen so far.
    """
    return np.column_stack([turn, before, past[:, :-1], np.log1p(past[:, -1])])


def tool_block(
    tools: np.ndarray, status: np.ndarray, calls: np.ndarray, names: np.ndarray, values: np.ndarray
) -> np.ndarray:
    """What is called, float64 [B, ·], from the bag of tools and int64 [B] numbers of calls, names and values."""
    sizes = map(np.log1p, (calls, names, values))
    return np.column_stack([tools, np.eye(len(STATUSES))[status], *sizes])
