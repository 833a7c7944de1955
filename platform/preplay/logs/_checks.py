"""Checks of assembled turns: what looks wrong without being unreadable. Each gives a number of turns."""

from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from preplay.logs._redact import count_secrets, match_regex

_HARNESS = (
    r"(?i)\b(?:you have|there (?:are|is)|with) \d+ (?:more )?(?:steps?|turns?|attempts?|tries|chances?|actions?) "
    r"(?:left|remaining|to go)|\b(?:remaining|left over) (?:steps|turns|attempts): ?\d+|\bstep \d+ ?(?:/|of) ?\d+\b"
)
_CUT = (
    r"(?i)(?:\[\.{3}|\.{3}|…)? ?[\[(<]?(?:output |text |content )?truncated[\])>]?\.?\s*$"
    r"|\[\d+ (?:more )?characters (?:omitted|truncated)\]"
)


def check_turns(turns: pa.Table) -> Counter[str]:
    """Number of turns with each finding, for turns that hold whole sessions in order."""
    notes = count_secrets(turns)
    found = Counter({f"secret_{name}": count for name, count in notes.items()})
    found["harness_text"] = _matching(turns["observation"], _HARNESS)
    suspects = match_regex(turns["observation"], "runcated")
    found["cut_texts"] = _matching(turns["observation"].filter(suspects), _CUT)
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
