"""A pool of support-desk sessions logged by one policy or several, and what any target makes of them.

Subsets of the pool are logs; the truth of a target comes from playing it.
"""

from dataclasses import dataclass

import numpy as np

from preplay.environments import get_environment
from preplay.environments.support_desk import Cues, DeskPolicy, Intent
from preplay.estimators import SessionBatch, index_sessions
from preplay.policies import AgentState

INTENTS = 8


def mixed(name: str, parts: list[tuple[float, DeskPolicy]], without: tuple[int, ...] = ()) -> DeskPolicy:
    """Each turn acts as one of several policies at random; intents in ``without`` are never used."""

    def rule(cues: Cues) -> dict[Intent, float]:
        total = sum(weight * _intent_row(part, cues) for weight, part in parts)
        kept = np.where(np.isin(np.arange(INTENTS), without), 0.0, total)
        return {Intent(i): float(p) for i, p in enumerate(kept / kept.sum())}

    return DeskPolicy(name, rule, softness=0.0, reads=max(part.reads for _, part in parts))


def _intent_row(policy: DeskPolicy, cues: Cues) -> np.ndarray:
    """Probabilities of the intents, float64 [8]."""
    row = np.full(INTENTS, policy._softness / INTENTS)
    for intent, weight in policy._rule(cues).items():
        row[intent] += (1 - policy._softness) * weight
    return row


@dataclass(frozen=True)
class DeskPool:
    """Sessions of one logging policy with a target's ratios."""

    batch: SessionBatch
    truth: float
    truth_error: float


def desk_pool(logging: DeskPolicy, target: DeskPolicy, sessions: int, seed: int) -> DeskPool:
    """Log ``sessions`` sessions and play the target as often for its true value."""
    desk = get_environment("support_desk")
    turns = desk.simulate(logging, sessions, seed).to_pydict()
    index = index_sessions(turns["session_id"], np.array(turns["turn"]))
    states, history = [], []
    for turn, observation, action in zip(turns["turn"], turns["observation"], turns["action"], strict=True):
        history = [] if turn == 0 else history
        states.append(
            AgentState(observation, desk.task, tuple(history[-target.reads :] if target.reads else ()), turn)
        )
        history = [*history, (observation, action)]
    ratio = target.log_prob(states, turns["action"]) - np.array(turns["behavior_logprob"])
    last = index.rows[index.offsets[1:] - 1]
    batch = SessionBatch(
        index.offsets,
        np.array(turns["reward"])[index.rows],
        desk.gamma,
        log_ratio=ratio[index.rows],
        truncated=np.array(turns["truncated"])[last],
        terminated=np.array(turns["terminated"])[last],
        horizon=desk.horizon,
    )
    played = desk.play(target, 2 * sessions, seed + 1, desk.gamma).returns
    return DeskPool(batch, float(played.mean()), float(played.std() / np.sqrt(len(played))))


def joined(pools: list[DeskPool]) -> tuple[SessionBatch, np.ndarray]:
    """The sessions of several pools of one target, and the number of the pool that each comes from."""
    batches = [pool.batch for pool in pools]
    together = {
        name: np.concatenate([getattr(batch, name) for batch in batches])
        for name in ("reward", "log_ratio", "truncated", "terminated")
    }
    offsets = np.concatenate([[0], np.cumsum(np.concatenate([batch.lengths for batch in batches]))])
    first = batches[0]
    batch = SessionBatch(offsets, gamma=first.gamma, horizon=first.horizon, **together)
    return batch, np.repeat(np.arange(len(batches)), [b.n_sessions for b in batches])
