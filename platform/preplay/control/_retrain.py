"""The flywheel's turn: learn from old and new decisions together, and keep the old critic if the new one forgets."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from preplay.control._audit import AuditLog
from preplay.critics import (
    ActionEncoder,
    Critic,
    CriticConfig,
    Decisions,
    RewardClassifier,
    Scorer,
    auc,
    save_scorer,
    train_classifier,
    train_critic,
)
from preplay.logs import TURN_SCHEMA
from preplay.seeding import numpy_rng


@dataclass(frozen=True)
class RetrainResult:
    """What came of a retraining.

    ``old`` and ``new`` are the two critics' AUC on the old held-out tasks, ``difference`` (new - old) comes with its
    bootstrap interval over tasks. ``replaced`` is False where the whole interval lies below 0: the new one forgets.
    """

    old: float
    new: float
    difference: float
    low: float
    high: float
    replaced: bool
    reason: str


def retrain(
    critic: Critic | RewardClassifier,
    old: Decisions,
    new: Decisions,
    held_out: Decisions,
    *,
    seed: int,
    config: CriticConfig | None = None,
    samples: int = 400,
) -> tuple[Critic | RewardClassifier, RetrainResult]:
    """Train on old and new decisions and compare on the old held-out tasks.

    Args:
        critic: The one in service.
        old: What it was trained on.
        new: Decisions since then (see :func:`decisions_turns`).
        held_out: Decisions of old tasks that neither saw.
        config: Of the new critic; the old one's by default. A classifier is trained anew as it was.

    Returns:
        The critic to use from now on, and why.
    """
    together = old.concatenate(new)
    options = {"feature_names": critic.feature_names, "fingerprint": critic.fingerprint}
    if isinstance(critic, RewardClassifier):
        candidate = train_classifier(critic.kind, together, seed=seed, **options)
    else:
        candidate = train_critic(config or critic.config, together, seed=seed, **options)
    result = compare_critics(critic, candidate, held_out, seed=seed, samples=samples)
    return (candidate if result.replaced else critic), result


def compare_critics(
    old: Scorer, new: Scorer, held_out: Decisions, *, seed: int, samples: int = 400
) -> RetrainResult:
    """AUC of both on held-out decisions, and the interval of the difference by a bootstrap of tasks."""
    scores = [critic.score(held_out.pools).mean[held_out.chosen] for critic in (old, new)]
    groups = held_out.group.astype(str)
    members = [np.flatnonzero(groups == g) for g in np.unique(groups)]
    rng = numpy_rng(seed, "forgetting")
    drawn = [
        np.concatenate([members[i] for i in rng.integers(len(members), size=len(members))])
        for _ in range(samples)
    ]
    right = held_out.success
    differences = np.array([auc(scores[1][r], right[r]) - auc(scores[0][r], right[r]) for r in drawn])
    finite = differences[np.isfinite(differences)]
    low, high = np.quantile(finite, [0.025, 0.975]) if len(finite) else (np.nan, np.nan)
    before, after = (auc(s, held_out.success) for s in scores)
    forgets = bool(high < 0)
    reason = (
        "it is worse on the old held-out tasks beyond its interval"
        if forgets
        else "it is not worse on the old tasks"
    )
    return RetrainResult(before, after, after - before, float(low), float(high), not forgets, reason)


def replace_critic(
    uri: str | Path,
    critic: Critic | RewardClassifier,
    result: RetrainResult,
    *,
    encoder: ActionEncoder | None = None,
) -> bool:
    """Publish the critic at ``uri`` unless it forgets; an artifact that stood there stays otherwise."""
    if result.replaced:
        save_scorer(critic, uri, encoder=encoder, metrics={"retrained": asdict(result)})
    return result.replaced


def decisions_turns(log: AuditLog) -> pa.Table:
    """Decisions with a known outcome as turns, so that critics can be trained on what the controller did."""
    rows = [row for row in log.read().to_pylist() if row["action"] is not None and row["reward"] is not None]
    last = {row["session_id"]: row["turn"] for row in rows}
    return pa.Table.from_pylist(
        [_turn(row, row["turn"] == last[row["session_id"]]) for row in rows], schema=TURN_SCHEMA
    )


def _turn(row: dict, ends: bool) -> dict:
    extras = {"candidates": row["candidates"], "task_name": row["task"], "decision": row["id"]}
    if row["success"] is not None:
        extras["solved"] = row["success"]
    if row["evidence"] is not None:
        extras["evidence"] = row["evidence"]
    return {
        "session_id": row["session_id"], "turn": row["turn"], "policy": "controller", "task": row["task"],
        "observation": row["observation"], "action": row["action"], "reward": row["reward"], "next_observation": "",
        "terminated": ends, "truncated": False, "timestamp": row["time"], "extras": json.dumps(extras),
        "source": f"audit:{row['id']}", "record_hash": row["id"],
    }  # fmt: skip
