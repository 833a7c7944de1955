"""Checks of assembled turns: what looks wrong without being unreadable. Each gives a number of turns."""

from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from preplay.logs._redact import HINTS, count_secrets, match_regex

_HARNESS = (
    r"(?i)\b(?:you have|there (?:are|is)|with) \d+ (?:more )?(?:steps?|turns?|attempts?|tries|chances?|actions?) "
    r"(?:left|remaining|to go)|\b(?:remaining|left over) (?:steps|turns|attempts): ?\d+|\bstep \d+ ?(?:/|of) ?\d+\b"
)
_CUT = (
    r"(?i)(?:\[\.{3}|\.{3}|…)? ?[\[(<]?(?:output |text |content )?truncated[\])>]?\.?\s*$"
    r"|\[\d+ (?:more )?characters (?:omitted|truncated)\]"
)
_SUSPICIOUS = rf"{HINTS}|{_HARNESS}|(?i:runcated|characters omitted)"
"""What a text needs for any finding: one look takes as long as another, whatever it looks for."""


def check_turns(turns: pa.Table) -> Counter[str]:
    """Number of turns with each finding, for turns that hold whole sessions in order."""
    suspects = turns["observation"].filter(match_regex(turns["observation"], _SUSPICIOUS))
    ends = pc.call_function("or", [turns["terminated"], turns["truncated"]])
    last = turns["next_observation"].filter(ends)  # a following turn repeats the others
    secrets = count_secrets([suspects, turns["action"], last])
    found = Counter({f"secret_{name}": count for name, count in secrets.items()})
    found["harness_text"] = _matching(suspects, _HARNESS)
    found["cut_texts"] = _matching(suspects, _CUT)
    found["next_observation_differs"] = _breaks(turns)
    return +found


def _matching(texts: pa.ChunkedArray, pattern: str) -> int:
    return pc.call_function("sum", [match_regex(texts, pattern)]).as_py() or 0


def _breaks(turns: pa.Table) -> int:
    """Turns whose next observation is not what the following turn observed."""
    if turns.num_rows < 2:
        return 0
    equal = pc.call_function(
        "equal", [turns["next_observation"].slice(0, turns.num_rows - 1), turns["observation"].slice(1)]
    )
    inside = np.diff(turns["turn"].to_numpy()) > 0
    return int((~equal.to_numpy() & inside).sum())
