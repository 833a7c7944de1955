"""Turns taken apart: calls, mentioned terms, facts shown, outcomes; every distinct text is read once.

R rows (turns, sorted by session and turn), M mentions, N facts, S sessions, V distinct terms.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from preplay.actions._harness import Harness, find_harness
from preplay.actions._outcomes import OutcomeClassifier, is_error, rejected_names
from preplay.actions._registry import PLAIN, AdapterShares, adapters, choose_adapter, detect_adapters
from preplay.actions._terms import mention, terms
from preplay.actions._types import STATUSES, ParsedAction
from preplay.errors import PreplayError

ENVIRONMENT_KEYS = (
    "environment_id",
    "environment",
    "database",
    "env_id",
    "domain",
    "repo",
    "game",
    "task_id",
)
"""Fields of ``extras`` that may name the environment, the most telling first."""
_FEW_POLICIES = 1.5
_MOST_LINES = 100


@dataclass(frozen=True)
class Pairs:
    """A sparse R × V relation: ``row`` and ``term`` int64 [N], sorted by row."""

    row: np.ndarray
    term: np.ndarray


@dataclass(frozen=True)
class StructuredTurns:
    """R turns taken apart; every code is an index into the list of names beside it.

    Args:
        session: int64 [R] number of the session; ``turn`` int64 [R].
        policy: int64 [R] into ``policies``; ``environment``: int64 [R] into ``environments`` (-1: unknown).
        tool: int64 [R] into ``tools``; ``status``: int64 [R] into ``STATUSES``; ``calls``: int64 [R] their number.
        outcome: int64 [R] into ``outcomes``, of the observation that followed; ``error``: bool [R].
        exact: int64 [R] into ``canonicals``, the distinct actions; ``skeleton``: into ``skeletons``, their tools and
            identifiers.
        names, values: identifiers and arguments mentioned; ``facts``: terms of the observation that followed,
            where it was no error; ``rejected``: names it refused; ``task``: terms of task and first observation,
            its rows are sessions.
        question: int64 [R] equal for sessions with the same task and first observation.
        lines: lines of the observation that followed; its terms are numbers of distinct lines.
        families: Which adapters read the actions.
        harness: Lines that were stripped from the observations.
    """

    session: np.ndarray
    turn: np.ndarray
    policy: np.ndarray
    environment: np.ndarray
    tool: np.ndarray
    status: np.ndarray
    calls: np.ndarray
    outcome: np.ndarray
    error: np.ndarray
    exact: np.ndarray
    skeleton: np.ndarray
    names: Pairs
    values: Pairs
    facts: Pairs
    rejected: Pairs
    task: Pairs
    question: np.ndarray
    lines: Pairs
    policies: list[str]
    environments: list[str]
    tools: list[str]
    outcomes: list[str]
    vocabulary: list[str]
    families: AdapterShares
    harness: Harness
    canonicals: list[str]
    skeletons: list[str]

    def __len__(self) -> int:
        return len(self.session)


T = TypeVar("T")


def structure(turns: pa.Table, *, environment_key: str | None = None) -> StructuredTurns:
    """Take turns apart (sorted by session and turn, as the readers give them).

    Args:
        turns: Rows of ``TURN_SCHEMA``.
        environment_key: Field of ``extras`` that names the environment; found by itself when absent.
    """
    if not turns.num_rows:
        raise PreplayError("there are no turns to take apart.")
    position = turns["turn"].to_numpy().astype(np.int64)
    session = np.cumsum(position == 0) - 1
    actions, following = turns["action"].to_pylist(), turns["next_observation"].to_pylist()
    shares = detect_adapters(actions)
    parsed, action_id = _once(actions, parser(shares))
    harness = find_harness(following, position)
    cleaned, seen_id = _once(following, harness.strip)
    classifier = OutcomeClassifier([r for name in shares.shares for r in _rules(name)])
    classes = classifier.classify(cleaned)
    kinds, kind_names = _codes([c.outcome for c in classes])
    words = _Vocabulary()
    firsts = np.flatnonzero(position == 0)
    tasks, first_seen = turns["task"].to_pylist(), turns["observation"].to_pylist()
    starts = [f"{tasks[i] or ''}\n{first_seen[i]}" for i in firsts.tolist()]
    outcome = kinds[seen_id]
    error = is_error(kind_names)[outcome]
    facts = [[] if c.outcome.startswith("error") else terms(t) for c, t in zip(classes, cleaned, strict=True)]
    rejects = [rejected_names(c) for c in classes]
    names, values = [names_of(p) for p in parsed], [values_of(p) for p in parsed]
    tool, tool_names = _codes([p.tool for p in parsed])
    exact, canonicals = _codes([p.canonical for p in parsed])
    skeleton, skeletons = _codes([skeleton_of(p) for p in parsed])
    policy, policies = _codes(turns["policy"].to_pylist())
    environment, environments = _environments(turns, session, environment_key)
    status = np.array([STATUSES.index(p.status) for p in parsed])
    count = np.array([len(p.calls) for p in parsed])
    task_text, task_id = _once(starts, terms)
    return StructuredTurns(
        session, position, policy, environment, tool[action_id], status[action_id], count[action_id],
        outcome, error, exact[action_id], skeleton[action_id],
        words.pairs(names, action_id), words.pairs(values, action_id), words.pairs(facts, seen_id),
        words.pairs(rejects, seen_id), words.pairs(task_text, task_id), task_id[session],
        _Vocabulary().pairs([_lines(t) for t in cleaned], seen_id),
        policies, environments, tool_names, kind_names, words.names, shares, harness, canonicals, skeletons,
    )  # fmt: skip


def _lines(text: str) -> list[str]:
    return [line for line in (part.strip() for part in text.split("\n")[:_MOST_LINES]) if line]


def parser(shares: AdapterShares) -> Callable[[str], ParsedAction]:
    """What takes an action apart by the adapter among those families that is surest of it."""
    known = {name: adapter for name, adapter in adapters().items() if name in shares.shares}

    def parse(action: str) -> ParsedAction:
        name = choose_adapter(action, known)
        if name == PLAIN:
            return ParsedAction((), " ".join(action.lower().split()), "text")
        return known[name].parse(action)

    return parse


def _rules(name: str):
    return adapters()[name].outcome_rules if name != PLAIN else ()


def _once(texts: Sequence[str], make: Callable[[str], T]) -> tuple[list[T], np.ndarray]:
    """``make`` of every distinct text, and which of them each text is."""
    number: dict[str, int] = {}
    ids = np.array([number.setdefault(text, len(number)) for text in texts], np.int64)
    return [make(text) for text in number], ids


def _codes(names: Sequence[str]) -> tuple[np.ndarray, list[str]]:
    number: dict[str, int] = {}
    return np.array([number.setdefault(n, len(number)) for n in names], np.int64), list(number)


def names_of(action: ParsedAction) -> list[str]:
    """Terms of its identifiers."""
    return [w for c in action.calls for i in c.identifiers for w in mention(i)]


def values_of(action: ParsedAction) -> list[str]:
    """Terms of its arguments."""
    return [w for c in action.calls for a in c.arguments for w in mention(a)]


def skeleton_of(action: ParsedAction) -> str:
    """Tool and identifiers; where a call has none, the action itself."""
    names = sorted({i for c in action.calls for i in c.identifiers})
    return f"{action.tool}|{' '.join(names)}" if names else action.canonical


class _Vocabulary:
    """Numbers for terms, and sparse relations made of lists of them."""

    def __init__(self):
        self._number: dict[str, int] = {}

    @property
    def names(self) -> list[str]:
        return list(self._number)

    def pairs(self, per_text: list[list[str]], text_id: np.ndarray) -> Pairs:
        """One pair per row and distinct term of the row's text."""
        number = self._number
        flat = np.array(
            [number.setdefault(w, len(number)) for found in per_text for w in dict.fromkeys(found)], np.int64
        )
        size = np.array([len(dict.fromkeys(found)) for found in per_text], np.int64)
        start = np.append(0, np.cumsum(size))
        length = size[text_id]
        row = np.repeat(np.arange(len(text_id)), length)
        within = np.arange(len(row)) - np.repeat(np.cumsum(length) - length, length)
        return Pairs(row, flat[np.repeat(start[:-1][text_id], length) + within])


def _environments(turns: pa.Table, session: np.ndarray, key: str | None) -> tuple[np.ndarray, list[str]]:
    """The environment of every row: the first field that groups sessions of several policies, else the task."""
    firsts = pa.array(np.flatnonzero(turns["turn"].to_numpy() == 0))
    extras = [_flat(json.loads(e)) for e in turns["extras"].take(firsts).to_pylist()]
    policies = turns["policy"].take(firsts).to_pylist()
    for name in [key] if key else ENVIRONMENT_KEYS:
        values = [None if e.get(name) is None else str(e[name]) for e in extras]
        if not any(v is not None for v in values):
            continue
        if key or _groups(values, policies):
            return _numbered(values, session)
    if key:
        raise PreplayError(
            f"no session has the field {key!r} in its extras.", fix="Name a field that is there."
        )
    tasks = turns["task"].take(firsts).to_pylist()
    return _numbered(tasks if _groups(tasks, policies) else [None] * len(tasks), session)


def _flat(extras: dict[str, Any]) -> dict[str, Any]:
    """One level deeper fields are found too (``task: {task_id: …}``); the outer ones win."""
    inner = {k: v for value in extras.values() if isinstance(value, dict) for k, v in value.items()}
    return inner | {k: v for k, v in extras.items() if not isinstance(v, dict | list)}


def _groups(values: Sequence[str | None], policies: Sequence[str]) -> bool:
    """Whether the values name several environments in which several policies acted."""
    found = {v for v in values if v is not None}
    return len(found) > 1 and len(set(zip(values, policies, strict=True))) >= _FEW_POLICIES * len(found)


def _numbered(values: Sequence[str | None], session: np.ndarray) -> tuple[np.ndarray, list[str]]:
    number = {v: i for i, v in enumerate(sorted({v for v in values if v is not None}))}
    return np.array([-1 if v is None else number[v] for v in values], np.int64)[session], list(number)
