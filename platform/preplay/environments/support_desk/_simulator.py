"""Many sessions at once: the simulator behind logs and truths."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from preplay.environments._protocol import Sessions
from preplay.environments.support_desk._agent_texts import intent_of
from preplay.environments.support_desk._config import DeskConfig, Event, Intent
from preplay.environments.support_desk._customer_texts import TEXT_DRAWS, render
from preplay.environments.support_desk._dynamics import START_DRAWS, STEP_DRAWS, DeskTurn, start, step
from preplay.errors import PreplayError
from preplay.logs import TURN_SCHEMA
from preplay.policies import AgentState, Policy
from preplay.seeding import numpy_rng

BLOCK = 2_000
"""Sessions simulated together; a session's draws depend on its block and place, not on the others."""


@dataclass(frozen=True)
class _Step:
    """One turn of the sessions still running: row numbers, texts and what happened."""

    rows: np.ndarray
    observations: list[str]
    actions: list[str]
    logprobs: np.ndarray | None
    next_observations: list[str]
    intents: np.ndarray
    result: DeskTurn


def simulate_turns(policy: Policy, sessions: int, seed: int, config: DeskConfig, task: str) -> pa.Table:
    """Turns of ``sessions`` new sessions in ``TURN_SCHEMA``, sorted by session and turn."""
    digits = max(6, len(str(sessions)))
    tables = []
    for first, count in _blocks(sessions):
        steps = list(_run_block(policy, first, count, seed, config, task))
        tables.append(_to_table(steps, policy.name, first, seed, digits, task))
    return pa.concat_tables(tables) if tables else TURN_SCHEMA.empty_table()


def simulate_sessions(
    policy: Policy, sessions: int, seed: int, config: DeskConfig, task: str, gamma: float
) -> Sessions:
    """Outcomes of ``sessions`` new sessions, without keeping their turns."""
    parts = [
        _outcomes(_run_block(policy, first, count, seed, config, task), count, gamma)
        for first, count in _blocks(sessions)
    ]
    return Sessions(*(np.concatenate(column) for column in zip(*(p.columns() for p in parts), strict=True)))


def _blocks(sessions: int) -> Iterator[tuple[int, int]]:
    if sessions < 1:
        raise PreplayError(f"{sessions} sessions cannot be simulated.", fix="Ask for at least one.")
    for first in range(0, sessions, BLOCK):
        yield first, min(BLOCK, sessions - first)


def _run_block(
    policy: Policy, first: int, count: int, seed: int, config: DeskConfig, task: str
) -> Iterator[_Step]:
    """Turn by turn until no session runs. The environment's draws do not depend on the policy."""
    world, agent = (numpy_rng(seed, "support_desk", part, first) for part in ("world", "agent"))
    state = start(world.random((BLOCK, START_DRAWS))[:count], config)
    opening = np.full(count, Event.OPENING)
    observations = render(state, opening, world.random((BLOCK, TEXT_DRAWS))[:count], config)
    rows = np.arange(count)
    histories: list[tuple[tuple[str, str], ...]] = [()] * count
    for turn in range(config.horizon):
        states = [
            AgentState(observation, task, history, turn)
            for observation, history in zip(observations, histories, strict=True)
        ]
        batch = policy.act(states, agent)
        intents = np.fromiter(map(intent_of, batch.actions), np.int64, len(rows))
        result = step(state, intents, world.random((BLOCK, STEP_DRAWS))[rows], config)
        texts = render(result.state, result.event, world.random((BLOCK, TEXT_DRAWS))[rows], config)
        yield _Step(rows, observations, batch.actions, batch.logprobs, texts, intents, result)
        on = np.flatnonzero(~(result.terminated | result.truncated))
        if policy.reads:
            said = zip(observations, batch.actions, strict=True)
            longer = [(*h, pair)[-policy.reads :] for h, pair in zip(histories, said, strict=True)]
            histories = [longer[i] for i in on.tolist()]
        else:
            histories = histories[: len(on)]
        rows, state, observations = rows[on], result.state.select(on), [texts[i] for i in on.tolist()]
        if not len(on):
            return


def _outcomes(steps: Iterator[_Step], count: int, gamma: float) -> Sessions:
    returns, lengths = np.zeros(count), np.zeros(count, dtype=np.int64)
    resolved, sale, churned = (np.zeros(count, dtype=bool) for _ in range(3))
    for turn, done in enumerate(steps):
        returns[done.rows] += gamma**turn * done.result.reward
        lengths[done.rows] += 1
        resolved[done.rows] |= done.result.resolved
        sale[done.rows] |= done.result.sale
        churned[done.rows] |= done.result.churned
    return Sessions(returns, lengths, resolved, sale, churned)


def _to_table(steps: list[_Step], name: str, first: int, seed: int, digits: int, task: str) -> pa.Table:
    rows = np.concatenate([s.rows for s in steps])
    turns = np.repeat(np.arange(len(steps)), [len(s.rows) for s in steps])
    order = np.lexsort((turns, rows))
    ids = [f"{name}-{seed}-{row + first:0{digits}d}" for row in rows[order].tolist()]
    turn_list = turns[order].tolist()
    observations, actions, texts = (
        _reordered([getattr(s, field) for s in steps], order)
        for field in ("observations", "actions", "next_observations")
    )
    rewards = np.concatenate([s.result.reward for s in steps])[order]
    extras = _reordered([[_extras(i, e) for i, e in _codes(s)] for s in steps], order)
    columns = {
        "session_id": ids,
        "turn": turns[order].astype(np.int32),
        "policy": [name] * len(ids),
        "task": [task] * len(ids),
        "observation": observations,
        "action": actions,
        "reward": rewards,
        "next_observation": texts,
        "terminated": np.concatenate([s.result.terminated for s in steps])[order],
        "truncated": np.concatenate([s.result.truncated for s in steps])[order],
        "behavior_logprob": _logprobs(steps, order),
        "extras": extras,
        "source": [f"support_desk#{i}:{turn}" for i, turn in zip(ids, turn_list, strict=True)],
        "record_hash": [
            hashlib.sha256("\x1f".join(map(str, record)).encode()).hexdigest()
            for record in zip(ids, turn_list, observations, actions, texts, rewards.tolist(), strict=True)
        ],
    }
    nulls = {f.name: pa.nulls(len(ids), f.type) for f in TURN_SCHEMA if f.name not in columns}
    return pa.table(columns | nulls).select(TURN_SCHEMA.names).cast(TURN_SCHEMA)


def _codes(done: _Step) -> Iterator[tuple[int, int]]:
    return zip(done.intents.tolist(), done.result.event.tolist(), strict=True)


_EXTRAS = {
    (intent, event): f'{{"intent": "{intent.name.lower()}", "event": "{event.name.lower()}"}}'
    for intent in Intent
    for event in Event
}


def _extras(intent: int, event: int) -> str:
    return _EXTRAS[Intent(intent), Event(event)]


def _logprobs(steps: list[_Step], order: np.ndarray) -> np.ndarray | list[None]:
    known = [s.logprobs for s in steps if s.logprobs is not None]
    return np.concatenate(known)[order] if len(known) == len(steps) else [None] * len(order)


def _reordered(lists: list[list[str]], order: np.ndarray) -> list[str]:
    flat = [text for texts in lists for text in texts]
    return [flat[i] for i in order.tolist()]
