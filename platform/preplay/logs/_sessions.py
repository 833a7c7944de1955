"""Steps of one session id made into turns: told apart, sorted, cut at the first gap, aligned, flagged.

The rules, in the order they are applied:

1. Equal steps with the same turn number are merged. Different ones mean that several sessions share the id:
   they are told apart by policy (``id@policy``), else by file (``id@file``); what still collides is
   quarantined, the first one stays.
2. Steps are sorted by turn number, else by time, else by arrival. A session must start at turn 0 or 1.
3. At the first gap (a missing or quarantined turn, or a missing reward) the session is cut: what follows is
   quarantined, what stands before it is used and marked as truncated. A gap is never bridged.
4. A missing next_state is the following turn's state; after the last turn it is "" if the session ended there.
5. Without any end flag, the last turn of a whole session counts as terminated; a flag that is there but not
   set makes it truncated. ``terminated`` wins over ``truncated``. Turns after the end are quarantined.
"""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from preplay.logs._check import Step
from preplay.logs._history import split_history
from preplay.logs._records import Quarantined, canonical_json, excerpt

_PLACE = {"file", "seq", "source", "record_hash"}
_COPIED = [
    *("policy", "action", "proposed_action", "terminated", "truncated", "behavior_logprob", "tokens", "cost"),
    *("latency_s", "timestamp", "source", "record_hash"),
]


@dataclass
class Assembled:
    """Turns of one or more sessions, what was not used, and how each record fared."""

    turns: list[dict[str, Any]] = field(default_factory=list)
    quarantined: list[Quarantined] = field(default_factory=list)
    notes: Counter[str] = field(default_factory=Counter)
    records: Counter[str] = field(default_factory=Counter)
    """Number of records ``read``, ``quarantined`` and ``merged``."""


def assemble(session_id: str, steps: Sequence[Step], out: Assembled) -> None:
    """Append the turns of one session id to ``out``."""
    steps = sorted(steps, key=lambda s: (s["file"], s["seq"]))
    outcomes = [s for s in steps if s["outcome"]]
    first_turn, first_refused = len(out.turns), len(out.quarantined)
    parts = _tell_apart(session_id, [s for s in steps if not s["outcome"]], out)
    cut = [_assemble_one(name, part, out) for name, part in parts]
    if outcomes:
        reward_logged = any(s["reward"] is not None for s in steps if not s["outcome"])
        _apply(outcomes, out.turns[first_turn:], cut, reward_logged, out)
    read = {t["source"] for t in out.turns[first_turn:]}
    bad = {q.source for q in out.quarantined[first_refused:]} | {s["source"] for s in steps if s["lost"]}
    merged = {s["source"] for s in steps} - read - bad
    out.records.update(read=len(read), quarantined=len(bad - read), merged=len(merged))


def _assemble_one(session_id: str, steps: list[Step], out: Assembled) -> bool:
    """Append the turns of one session; say whether it was cut at a gap."""
    kept, is_cut = _until_gap(_in_order(steps, out), out)
    kept, is_cut = _until_end(kept, is_cut, out)
    if not kept:
        return is_cut
    observed = split_history(kept)
    out.notes["sessions_of_whole_histories"] += observed is not None
    pairs = observed or [(s["state"], s["next_state"]) for s in kept]
    turns = [_turn(session_id, step, kept[0]["task"], pair) for step, pair in zip(kept, pairs, strict=True)]
    for turn, following in pairwise(turns):
        if turn["next_observation"] is None:
            turn["next_observation"] = following["observation"]
            out.notes["next_state_filled"] += 1
    _note_rewards(kept, out)
    turns = _close(turns, kept, is_cut, out)
    out.turns += [turn | {"turn": i} for i, turn in enumerate(turns)]
    return is_cut


def _apply(
    outcomes: list[Step], turns: list[dict[str, Any]], cut: list[bool], reward_logged: bool, out: Assembled
) -> None:
    """Put a reward that was logged apart onto the last turn, or say why it cannot be used."""
    values = {s["reward"] for s in outcomes}
    problem = None
    if len(values) > 1:
        problem = f"conflicting outcomes: {', '.join(map(str, sorted(values)))}"
    elif not turns:
        problem = "an outcome without a usable turn of its session"
    elif len(cut) > 1:
        problem = "an outcome of a session id that several sessions share"
    elif any(cut):
        problem = "an outcome of a session that is cut before its end"
    elif reward_logged:
        total = sum(t["reward"] for t in turns)
        problem = None if total == outcomes[0]["reward"] else f"the session's turns have a return of {total}"
    else:
        turns[-1]["reward"] = outcomes[0]["reward"]
        out.notes["sessions_without_reward"] -= 1
        out.notes["outcomes_joined"] += 1
    if problem:
        out.quarantined += [_refused(s, "outcome", problem) for s in outcomes]


def _note_rewards(steps: list[Step], out: Assembled) -> None:
    if all(s["reward"] is None for s in steps):
        out.notes["sessions_without_reward"] += 1
    elif steps[0]["reward"] is None:
        out.notes["rewarded_at_end_only"] += 1


def _tell_apart(session_id: str, steps: list[Step], out: Assembled) -> list[tuple[str, list[Step]]]:
    steps = _without_copies(steps, out)
    if not _collisions(steps):
        return [(session_id, steps)]
    for key in ("policy", "file"):
        parts: dict[str, list[Step]] = {}
        for step in steps:
            parts.setdefault(step[key], []).append(step)
        if len(parts) > 1 and not any(map(_collisions, parts.values())):
            out.notes[f"split_by_{key}"] += 1
            return [(f"{session_id}@{name}", part) for name, part in parts.items()]
    later = _collisions(steps)
    first = {s["order"]: s["source"] for s in reversed(steps)}
    for step in later:
        reason = f"turn {step['order']} stands already in {first[step['order']]} with other content"
        out.quarantined.append(_refused(step, "turn_id", reason))
    gone = {id(s) for s in later}
    return [(session_id, [s for s in steps if id(s) not in gone])]


def _without_copies(steps: list[Step], out: Assembled) -> list[Step]:
    """Drop equal steps of the same turn, and whole files that repeat a session without turn numbers."""
    if all(s["order"] is None for s in steps):
        return _without_copied_files(steps, out)
    seen: set[str] = set()
    kept = []
    for step in steps:
        content = canonical_json({k: str(v) for k, v in step.items() if k not in _PLACE})
        if step["order"] is not None and not step["lost"] and content in seen:
            out.notes["duplicate_turns"] += 1
            continue
        seen.add(content)
        kept.append(step)
    return kept


def _without_copied_files(steps: list[Step], out: Assembled) -> list[Step]:
    files: dict[str, list[Step]] = {}
    for step in steps:
        files.setdefault(step["file"], []).append(step)
    seen: set[tuple[str, ...]] = set()
    kept: list[Step] = []
    for part in files.values():
        content = tuple(s["record_hash"] for s in part)
        if content in seen:
            out.notes["duplicate_turns"] += len(part)
            continue
        seen.add(content)
        kept += part
    return kept


def _collisions(steps: Iterable[Step]) -> list[Step]:
    """The steps whose turn number an earlier step has."""
    seen: set[int] = set()
    later = []
    for step in steps:
        if step["order"] is not None and not step["lost"]:
            later += [step] if step["order"] in seen else []
            seen.add(step["order"])
    return later


def _in_order(steps: list[Step], out: Assembled) -> list[Step]:
    numbered = [s for s in steps if s["order"] is not None]
    if not numbered:
        out.notes["turn_ids_missing"] += 1
        timed = all(s["timestamp"] is not None for s in steps)
        return sorted(steps, key=lambda s: s["timestamp"]) if timed else steps
    unplaced = [s for s in steps if s["order"] is None]
    for step in unplaced:
        if not step["lost"]:
            out.quarantined.append(
                _refused(step, "turn_id", "missing, but other turns of the session have one")
            )
    held = {s["order"] for s in numbered if not s["lost"]}
    numbered = [s for s in numbered if not (s["lost"] and s["order"] in held)]
    ordered = sorted(numbered, key=lambda s: s["order"])
    out.notes["unsorted_sessions"] += ordered != numbered
    return ordered + [{**s, "lost": True} for s in unplaced[:1]]


def _until_gap(steps: list[Step], out: Assembled) -> tuple[list[Step], bool]:
    """The steps before the first gap, and whether there was one."""
    rewards_needed = not _rewarded_at_end_only(steps)
    for i, step in enumerate(steps):
        problem = _gap(steps[i - 1] if i else None, step, rewards_needed)
        if problem:
            _cut(steps[i:], problem, out)
            return steps[:i], True
    return steps, False


def _rewarded_at_end_only(steps: list[Step]) -> bool:
    return all(s["reward"] is None for s in steps[:-1])


def _gap(before: Step | None, step: Step, rewards_needed: bool) -> tuple[str, str] | None:
    """Field and reason where the step does not follow the one before it."""
    if step["lost"]:
        return "turn_id", f"the turn at {step['source']} is quarantined"
    order = step["order"]
    if before is None and order is not None and order > 1:
        return "turn_id", f"the turns before {order} are missing"
    if before is not None and order is not None and order != before["order"] + 1:
        return "turn_id", f"turn {before['order'] + 1} is missing"
    if rewards_needed and step["reward"] is None:
        return "reward", "missing, but other turns of the session have one"
    return None


def _cut(rest: list[Step], problem: tuple[str, str], out: Assembled) -> None:
    head, *followers = rest
    out.notes["cut_sessions"] += 1
    if not head["lost"]:
        out.quarantined.append(_refused(head, *problem))
    for step in followers:
        if not step["lost"]:
            out.quarantined.append(_refused(step, "turn_id", f"follows a gap in its session: {problem[1]}"))


def _until_end(steps: list[Step], is_cut: bool, out: Assembled) -> tuple[list[Step], bool]:
    """The steps up to the first end flag."""
    for i, step in enumerate(steps[:-1]):
        if step["terminated"] or step["truncated"]:
            for later in steps[i + 1 :]:
                reason = f"follows the end of its session at {step['source']}"
                out.quarantined.append(_refused(later, "turn_id", reason))
            out.notes["turns_after_end"] += len(steps) - i - 1
            return steps[: i + 1], False
    return steps, is_cut


def _turn(session_id: str, step: Step, task: str | None, observed: tuple[str, str | None]) -> dict[str, Any]:
    extras = step["extras"]
    if step["task"] != task and step["task"] is not None:
        extras = canonical_json({**json.loads(extras), "task": step["task"]})
    copied = {name: step[name] for name in _COPIED}
    own = {"session_id": session_id, "task": task, "reward": step["reward"] or 0.0, "extras": extras}
    return copied | own | {"observation": observed[0], "next_observation": observed[1]}


def _close(
    turns: list[dict[str, Any]], steps: list[Step], is_cut: bool, out: Assembled
) -> list[dict[str, Any]]:
    """Set the flags of the last turn; give up a last turn of which nobody knows what followed."""
    last = turns[-1]
    flagged = any(s["terminated"] is not None or s["truncated"] is not None for s in steps)
    for turn in turns:
        turn["terminated"] = bool(turn["terminated"])
        turn["truncated"] = bool(turn["truncated"]) and not turn["terminated"]
    if not (last["terminated"] or last["truncated"]):
        last["terminated"] = not flagged and not is_cut
        last["truncated"] = not last["terminated"]
        out.notes["end_assumed" if last["terminated"] else "open_end"] += not is_cut
    out.notes["both_flags"] += sum(bool(s["terminated"] and s["truncated"]) for s in steps)
    if is_cut:
        last["extras"] = canonical_json({**json.loads(last["extras"]), "cut_at_gap": True})
    if last["next_observation"] is None:
        return _without_known_end(turns, steps[-1], out)
    return turns


def _without_known_end(turns: list[dict[str, Any]], step: Step, out: Assembled) -> list[dict[str, Any]]:
    if turns[-1]["terminated"]:
        out.notes["end_not_logged"] += 1
        turns[-1]["next_observation"] = ""
        return turns
    out.quarantined.append(_refused(step, "next_state", "missing, and neither a following turn nor an end"))
    if len(turns) > 1:
        turns[-2]["truncated"] = True
    return turns[:-1]


def _refused(step: Step, field: str, reason: str) -> Quarantined:
    shown = excerpt({"session_id": step["session_id"], "state": step["state"], "action": step["action"]})
    return Quarantined(step["source"], field, reason, shown)
