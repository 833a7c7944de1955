"""States that carry the whole history: what is new in each one.

Agents' logs often hold the full conversation so far as ``state``. Where every next state begins with its
state, the shared beginning is history and only the new end is an observation. Joining the observations
(without the brackets of a list) gives the states back.
"""

import json
from collections.abc import Sequence
from itertools import pairwise

from preplay.logs._check import Step


def split_history(steps: Sequence[Step]) -> list[tuple[str, str | None]] | None:
    """Observation and next observation per step, or None when the states are no growing histories.

    It takes every state and next state of the session to agree: one that does not grow means that all of
    them are plain observations.
    """
    if not all(s["whole_state"] for s in steps) or all(s["next_state"] is None for s in steps):
        return None
    observations: list[str | None] = [steps[0]["state"]]
    observations += [new_part(a["state"], b["state"]) for a, b in pairwise(steps)]
    following = [_next_part(s) for s in steps]
    if None in observations or any(
        f is None and s["next_state"] is not None for f, s in zip(following, steps, strict=True)
    ):
        return None
    return [(o or "", f) for o, f in zip(observations, following, strict=True)]


def new_part(old: str, new: str) -> str | None:
    """What ``new`` adds to the end of ``old``: a text's tail, or the new items of a JSON list."""
    if not old or len(new) <= len(old):
        return None
    if new.startswith(old):
        return new[len(old) :]
    if old[0] == "[" and old[-1] == "]" and new.startswith(old[:-1] + ","):
        tail = "[" + new[len(old) :]
        return tail if _is_json(tail) else None
    return None


def _next_part(step: Step) -> str | None:
    return None if step["next_state"] is None else new_part(step["state"], step["next_state"])


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
