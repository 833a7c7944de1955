"""From loose rows to ragged sessions, and from a file of shadow actions to what the target would do where.

Shapes: R turns kept, S sessions kept, N rows given, K actions per state, D features of an action.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from preplay.errors import PreplayError


@dataclass(frozen=True)
class SessionIndex:
    """Which rows make up the sessions.

    Args:
        rows: int64 [R], row numbers in session order; apply to every per-row array.
        offsets: int64 [S + 1].
        session_ids: Names of the S sessions, in order of first appearance.
        quarantined: Reason → number of sessions left out.
        examples: Reason → the first such session.
    """

    rows: np.ndarray
    offsets: np.ndarray
    session_ids: list[str]
    quarantined: dict[str, int] = field(default_factory=dict)
    examples: dict[str, str] = field(default_factory=dict)


def index_sessions(
    session_id: Sequence[str], turn: np.ndarray, valid: np.ndarray | None = None
) -> SessionIndex:
    """Sort turns into sessions; sessions with missing, duplicate or invalid turns are left out and counted.

    Args:
        session_id: N names, in any order.
        turn: int [N], position in the session, from 0.
        valid: bool [N], False for rows whose propensity or reward was refused; all True when absent.

    Raises:
        PreplayError: When no session is left.
    """
    names, first, number = np.unique(np.asarray(session_id, str), return_index=True, return_inverse=True)
    appearance = np.argsort(np.argsort(first))[number]
    turn = np.asarray(turn, np.int64)
    rows = np.lexsort((turn, appearance))
    starts = np.flatnonzero(np.diff(appearance[rows], prepend=-1))
    lengths = np.diff(np.append(starts, len(rows)))
    step = np.diff(turn[rows], prepend=-1)
    step[starts] = turn[rows][starts] + 1
    bad_rows = ~np.ones(len(rows), bool) if valid is None else ~np.asarray(valid, bool)[rows]
    faults = {
        "duplicate turn": np.logical_or.reduceat(step == 0, starts),
        "missing turn": np.logical_or.reduceat((step != 0) & (step != 1), starts),
        "invalid row": np.logical_or.reduceat(bad_rows, starts),
    }
    ids = names[np.argsort(first)]
    keep, counts, examples = np.ones(len(starts), bool), {}, {}
    for reason, hit in faults.items():
        new = hit & keep
        if new.any():
            counts[reason], examples[reason] = int(new.sum()), str(ids[np.argmax(new)])
        keep &= ~hit
    if not keep.any():
        reasons = ", ".join(f"{n} × {r} (first: {examples[r]})" for r, n in counts.items())
        raise PreplayError(f"no session is left to evaluate: {reasons}.", fix="Repair or re-export the log.")
    offsets = np.append(0, np.cumsum(lengths[keep]))
    return SessionIndex(rows[np.repeat(keep, lengths)], offsets, list(map(str, ids[keep])), counts, examples)


@dataclass(frozen=True)
class ShadowActions:
    """What the target would do in logged states, ready for ``FQEInputs``.

    Args:
        start_features: float32 [S, K, D] and ``start_weights`` float64 [S, K], in the first states.
        next_features: float32 [R, K, D] and ``next_weights`` float64 [R, K], in the states that follow.
        logged_share: float64 [R], share of the shadow actions of each turn that equal the logged one; NaN
            without keys.
    """

    start_features: np.ndarray
    start_weights: np.ndarray
    next_features: np.ndarray
    next_weights: np.ndarray
    logged_share: np.ndarray


def align_shadow_actions(
    index: SessionIndex,
    follows: np.ndarray,
    session_id: Sequence[str],
    turn: np.ndarray,
    features: np.ndarray,
    *,
    keys: Sequence[str] | None = None,
    logged_keys: Sequence[str] | None = None,
) -> ShadowActions:
    """Lay shadow actions beside the logged turns; several per state count equally.

    Args:
        index: The logged sessions.
        follows: bool [R], whether a value follows the turn (``FQEInputs.follows``): there an action is
            needed.
        session_id, turn: N shadow rows; turn t means the state before logged turn t, t = length the last
            state.
        features: float32 [N, D] of the shadow actions.
        keys, logged_keys: Texts or clusters of the shadow actions [N] and the logged ones [R], to say how
            often they agree.

    Raises:
        PreplayError: When a state that needs an action has none.
    """
    number = {name: i for i, name in enumerate(index.session_ids)}
    lengths = np.diff(index.offsets)
    session = np.array([number.get(s, -1) for s in session_id])
    turn = np.asarray(turn, np.int64)
    known = (session >= 0) & (turn >= 0) & (turn <= lengths[session])
    slot = np.where(
        known, index.offsets[:-1][session] + session + turn, -1
    )  # one slot more than turns per session
    slots = int(index.offsets[-1]) + len(lengths)
    order = np.argsort(slot[known], kind="stable")
    rows = np.flatnonzero(known)[order]
    count = np.bincount(slot[rows], minlength=slots)
    place = np.arange(len(rows)) - np.repeat(np.cumsum(count) - count, count)
    dense = np.zeros((slots, max(int(count.max(initial=0)), 1), features.shape[1]), np.float32)
    dense[slot[rows], place] = features[rows]
    weights = np.zeros(dense.shape[:2])
    weights[slot[rows], place] = 1 / count[slot[rows]]
    before = np.arange(index.offsets[-1]) + np.repeat(np.arange(len(lengths)), lengths)
    first = index.offsets[:-1] + np.arange(len(lengths))
    _require_actions(count, first, before + 1, np.asarray(follows, bool))
    agree = np.full(len(before), np.nan)
    if keys is not None and logged_keys is not None:
        agree = _agreement(np.asarray(keys)[rows], slot[rows], np.asarray(logged_keys), before, count)
    after = before + 1
    even = np.where(count[after][:, None] > 0, weights[after], 1 / weights.shape[1])
    return ShadowActions(dense[first], weights[first], dense[after], even, agree)


def _require_actions(count: np.ndarray, first: np.ndarray, after: np.ndarray, follows: np.ndarray) -> None:
    missing = int((count[first] == 0).sum() + (count[after[follows]] == 0).sum())
    if missing:
        raise PreplayError(
            f"{missing} of {len(first) + int(follows.sum())} logged states have no shadow action.",
            fix="Give the action the new policy would take in every logged state, the first and a cut last one too.",
        )


def _agreement(
    keys: np.ndarray, slot: np.ndarray, logged: np.ndarray, before: np.ndarray, count: np.ndarray
) -> np.ndarray:
    by_slot = np.empty(len(count), dtype=logged.dtype)
    by_slot[before] = logged
    here = np.zeros(len(count), bool)
    here[before] = True
    hits = np.bincount(slot, (keys == by_slot[slot]) & here[slot], len(count))
    with np.errstate(invalid="ignore"):
        return (hits / count)[before]
