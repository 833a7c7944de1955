"""Text that the harness adds to observations: step counters and reminders. It says how far a session is, no more."""

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

_KNOWN = re.compile(
    r"(?im)^[^\n]{0,40}?\b(?:you have|there are|remaining:?)?\s*\d+\s+"
    r"(?:steps?|turns?|tries|attempts?|chances?|actions?)\s+(?:left|remaining)[^\n]{0,120}$|^\(?(?:step|turn)\s+\d+\s*(?:/|of)\s*\d+\)?\s*$"
    r"|^you should take the last step to propose a solution\.?\s*$"
)
_NUMBER = re.compile(r"\d+")
_LINES = 3
_LONGEST_LINE = 200
_SHARE = 0.2
_AGREE = 0.8


@dataclass(frozen=True)
class Harness:
    """Line templates (digits as ``#``) whose first number counts the turns of a session up or down."""

    templates: frozenset[str] = frozenset()

    def strip(self, text: str) -> str:
        """The text without lines that the harness wrote."""
        if not self.templates:
            return _KNOWN.sub("", text).strip() if _KNOWN.search(text) else text
        kept = [line for line in text.split("\n") if _template(line) not in self.templates]
        return _KNOWN.sub("", "\n".join(kept)).strip()


def find_harness(texts: Sequence[str], turn: np.ndarray) -> Harness:
    """Find the step counters among the observations.

    Args:
        texts: R observations.
        turn: int [R] positions in the session. A line is a counter when it stands in a fifth of the
            observations and its first number is nearly always the same in the same turn, and not in all turns.
    """
    seen: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for text, position in zip(texts, turn.tolist(), strict=True):
        lines = text.strip().split("\n") if len(text) < 100_000 else []
        for line in {*lines[:_LINES], *lines[-_LINES:]}:
            if len(line) <= _LONGEST_LINE and (number := _NUMBER.search(line)):
                seen[_template(line)].append((position, int(number[0][:15])))
    return Harness(frozenset(t for t, found in seen.items() if _is_counter(found, len(texts))))


def _template(line: str) -> str:
    return _NUMBER.sub("#", line)


def _is_counter(found: list[tuple[int, int]], rows: int) -> bool:
    pairs = np.array(found)
    if len(pairs) < max(20, _SHARE * rows) or len(np.unique(pairs[:, 0])) < 2:
        return False
    agree, modes = 0, []
    for position in np.unique(pairs[:, 0]):
        values, counts = np.unique(pairs[pairs[:, 0] == position, 1], return_counts=True)
        agree += counts.max()
        modes.append(values[counts.argmax()])
    return agree >= _AGREE * len(pairs) and len(set(modes)) == len(modes)
