"""Logged decisions as arrays: what could be chosen, what was, what followed.

Legend: N decisions, M candidates of all pools together, F features, S state features, H reward heads, D embedding.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from preplay.critics._encoder import ActionEncoder, DecisionState, EncodedPools
from preplay.errors import PreplayError


@dataclass(frozen=True)
class Decisions:
    """Decisions sorted by session and turn.

    Args:
        pools: Encoded states and candidates.
        chosen: Row of the executed candidate among the M, int64 [N].
        reward: float64 [N, H].
        success: Whether the action was right as far as is known (``solved`` in extras, else reward >= 1), bool [N].
        following: Index of the session's next decision, -1 at its end, int64 [N].
        terminated: The session ended by itself here, bool [N].
        truncated: The session was cut here, bool [N].
        session: Session of each decision, int64 [N].
        group: Task of each decision, the unit of splits, object [N].
    """

    pools: EncodedPools
    chosen: np.ndarray
    reward: np.ndarray
    success: np.ndarray
    following: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray
    session: np.ndarray
    group: np.ndarray

    def __post_init__(self):
        n = len(self.chosen)
        sizes = [
            len(a)
            for a in (self.reward, self.success, self.following, self.terminated, self.session, self.group)
        ]
        if set(sizes) != {n} or len(self.pools.offsets) != n + 1:
            raise ValueError(f"{n} decisions but arrays of {sizes} and {len(self.pools.offsets) - 1} pools")

    def __len__(self) -> int:
        return len(self.chosen)

    def select(self, keep: np.ndarray) -> "Decisions":
        """The decisions of whole sessions whose entry in ``keep`` (bool [N]) is true."""
        rows = np.flatnonzero(keep)
        new_row = np.full(len(self) + 1, -1)
        new_row[rows] = np.arange(len(rows))
        if any(new_row[self.following[r]] < 0 <= self.following[r] for r in rows):
            raise ValueError("select whole sessions: a following decision would be lost")
        pools, moved = self.pools.select(rows)
        return replace(
            self,
            pools=pools,
            chosen=moved[self.chosen[rows]],
            following=np.where(self.following[rows] < 0, -1, new_row[self.following[rows]]),
            **{
                name: getattr(self, name)[rows]
                for name in ("reward", "success", "terminated", "truncated", "session", "group")
            },
        )

    def concatenate(self, other: "Decisions") -> "Decisions":
        """Both, one after the other (they must come from the same encoder)."""
        pools = self.pools.concatenate(other.pools)
        n, m = len(self), len(self.pools.features)
        joined: dict[str, Any] = {
            name: np.concatenate([getattr(self, name), getattr(other, name)])
            for name in ("reward", "success", "terminated", "truncated", "group")
        }
        shift = int(self.session.max()) + 1 if n else 0
        following = np.where(other.following < 0, -1, other.following + n)
        return Decisions(
            pools=pools,
            chosen=np.concatenate([self.chosen, other.chosen + m]),
            following=np.concatenate([self.following, following]),
            session=np.concatenate([self.session, other.session + shift]),
            **joined,
        )


def decisions_from_turns(
    turns: pa.Table,
    encoder: ActionEncoder,
    *,
    rewards: np.ndarray | None = None,
    group_key: str = "task_name",
) -> Decisions:
    """Read decisions off turns; the pool is ``extras["candidates"]`` where it was logged, else the action alone.

    ``extras["evidence"]`` holds the numbers of each candidate, ``extras["chosen"]`` the executed one's place where
    candidates may read alike.

    Args:
        turns: Table in the Turn schema.
        encoder: Makes features of states and candidates.
        rewards: float64 [R, H] in place of the logged reward, in the order of the turns.
        group_key: Key in ``extras`` (else the task) that names the unit of splits; it is the session where all share
            one task, as with a bot that always has the same instructions.
    """
    order = np.lexsort((turns["turn"].to_numpy(), turns["session_id"].to_numpy(zero_copy_only=False)))
    rows = turns.take(pa.array(order)).to_pylist()
    extras = [_extras(row) for row in rows]
    states, pools = _states(rows), [_pool(row, extra) for row, extra in zip(rows, extras, strict=True)]
    encoded = encoder.encode(states, pools, [extra.get("evidence") for extra in extras])
    chosen = [
        int(start) + _place(row, extra, pool)
        for start, pool, row, extra in zip(encoded.offsets[:-1], pools, rows, extras, strict=True)
    ]
    ids = [row["session_id"] for row in rows]
    reward = (
        turns["reward"].to_numpy()[order][:, None]
        if rewards is None
        else np.asarray(rewards, np.float64)[order]
    )
    if not np.isfinite(reward).all():
        raise PreplayError(
            "a reward is not finite.", where=rows[int(np.argmin(np.isfinite(reward).all(1)))]["source"]
        )
    return Decisions(
        pools=encoded,
        chosen=np.array(chosen, np.int64),
        reward=reward,
        success=np.array(
            [bool(e.get("solved", r["reward"] >= 1)) for e, r in zip(extras, rows, strict=True)], bool
        ),
        following=np.array(
            [i + 1 if i + 1 < len(ids) and ids[i + 1] == ids[i] else -1 for i in range(len(ids))]
        ),
        terminated=np.array([row["terminated"] for row in rows], bool),
        truncated=np.array([row["truncated"] for row in rows], bool),
        session=np.unique(ids, return_inverse=True)[1].astype(np.int64),
        group=_groups(rows, extras, group_key),
    )


def decision_texts(turns: pa.Table, encoder: ActionEncoder) -> list[str]:
    """The distinct texts that :func:`decisions_from_turns` asks ``encoder``'s sentence encoder about."""
    rows = turns.to_pylist()
    return encoder.texts(_states(rows), [_pool(row, _extras(row)) for row in rows])


def split_groups(data: Decisions, share: float, rng: np.random.Generator) -> tuple[Decisions, Decisions]:
    """Split by group (task): the second part holds about ``share`` of the groups, never a group of the first."""
    groups = np.unique(data.group.astype(str))
    if len(groups) < 2:
        raise PreplayError("one session cannot be split into training and test.", fix="Log more sessions.")
    count = min(len(groups) - 1, max(1, round(share * len(groups))))
    held = np.isin(data.group.astype(str), rng.choice(groups, count, replace=False))
    return data.select(~held), data.select(held)


def _states(rows: Sequence[Mapping[str, Any]]) -> list[DecisionState]:
    return [DecisionState(row["task"] or "", row["observation"], row["turn"]) for row in rows]


def _groups(rows: Sequence[Mapping[str, Any]], extras: Sequence[Mapping[str, Any]], key: str) -> np.ndarray:
    names = [e.get(key) or r["task"] for e, r in zip(extras, rows, strict=True)]
    if not any(key in e for e in extras) and len(set(names)) < 2:
        names = [None] * len(rows)
    return np.array([str(name or r["session_id"]) for name, r in zip(names, rows, strict=True)], object)


def _extras(row: Mapping[str, Any]) -> dict[str, Any]:
    value = json.loads(row["extras"] or "{}")
    return value if isinstance(value, dict) else {}


def _place(row: Mapping[str, Any], extras: Mapping[str, Any], pool: list[str]) -> int:
    """Where in its pool the executed action stands."""
    place = extras.get("chosen")
    if place is None:
        return pool.index(row["action"])
    if not isinstance(place, int) or not 0 <= place < len(pool) or pool[place] != row["action"]:
        raise PreplayError(
            f"candidate {place!r} is not the executed action.",
            where=row["source"],
            fix="Let extras.chosen be the place of the executed action in extras.candidates, from 0.",
        )
    return place


def _pool(row: Mapping[str, Any], extras: Mapping[str, Any]) -> list[str]:
    """The logged candidates; the executed action is among them even where the harness changed it."""
    pool: Sequence[Any] = extras.get("candidates") or []
    texts = [text for text in pool if isinstance(text, str)]
    return texts if row["action"] in texts else [*texts, row["action"]]
