"""Support desk: critics of plain-text logs without candidates choose among what the logging policies propose."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks._control_arms import best_of_each
from benchmarks._control_cells import Cell, cells, summarize
from preplay.critics import (
    ActionEncoder,
    CriticConfig,
    DecisionState,
    Scorer,
    decision_texts,
    decisions_from_turns,
    train_critic,
)
from preplay.embedding import EncoderConfig, embedded_encoder
from preplay.environments import Environment, get_environment
from preplay.policies import ActionBatch, AgentState, Policy
from preplay.seeding import derive_seed

BASE, ORACLE = "first proposal", "expert policy"
Choose = Callable[[Sequence[AgentState], list[list[str]], np.random.Generator], list[str]]


@dataclass(frozen=True)
class DeskSettings:
    """Sessions that are logged and, per arm, played; proposals per turn; steps of training."""

    logged: int = 1000
    played: int = 400
    candidates: int = 4
    steps: int = 400
    members: int = 3


def support_desk(seeds: int, folder: Path | None, cache: Path, settings: DeskSettings) -> dict[str, float]:
    """Mean discounted return of every arm over the seeds; logs and customers differ from seed to seed."""
    found = cells(folder, "desk", seeds, lambda seed: _one_seed(seed, cache, settings))
    return summarize(found, BASE, ORACLE, "return")


def _one_seed(seed: int, cache: Path, settings: DeskSettings) -> Cell:
    env = get_environment("support_desk")
    behaviour = list(env.behaviour_policies().values())
    share = settings.logged // len(behaviour)
    logs = pa.concat_tables([env.simulate(p, share, derive_seed(seed, "logs", p.name)) for p in behaviour])
    arms = {BASE: _first, "random proposal": _random} | _critics(env, logs, seed, cache, settings)
    cell = {
        name: _play(env, Chooser(name, behaviour, settings.candidates, choose), seed, settings.played)
        for name, choose in arms.items()
    }
    return cell | {ORACLE: _play(env, env.target_policies()["expert"], seed, settings.played)}


def _critics(
    env: Environment, logs: pa.Table, seed: int, cache: Path, settings: DeskSettings
) -> dict[str, Choose]:
    structure = ActionEncoder(horizon=env.horizon)
    embedded = ActionEncoder(horizon=env.horizon)
    embedded.encoder = embedded_encoder(decision_texts(logs, embedded), EncoderConfig(), cache)
    config = CriticConfig(gamma=env.gamma, steps=settings.steps)
    plans = {
        "IQL, structure alone": (structure, config),
        "reward of this turn alone": (embedded, config.model_copy(update={"gamma": 0.0})),
        "CQL": (embedded, config.model_copy(update={"algorithm": "cql"})),
        "IQL": (embedded, config),
        "IQL ensemble": (embedded, config.model_copy(update={"members": settings.members})),
    }
    data = {id(encoder): decisions_from_turns(logs, encoder) for encoder in (structure, embedded)}
    return {
        name: _best_by(train_critic(how, data[id(encoder)], seed=seed), encoder)
        for name, (encoder, how) in plans.items()
    }


class Chooser:
    """An agent whose proposals come from other policies by turns, the first of them drawn in each state."""

    deterministic = False

    def __init__(self, name: str, proposers: Sequence[Policy], candidates: int, choose: Choose):
        self.name, self.reads = name, max(policy.reads for policy in proposers)
        self._proposers, self._candidates, self._choose = proposers, candidates, choose

    def act(self, states: Sequence[AgentState], rng: np.random.Generator) -> ActionBatch:
        """One chosen proposal per state."""
        first = rng.integers(len(self._proposers), size=len(states))
        offered = [policy.act(states, rng).actions for policy in self._by_turns()]
        count = len(self._proposers)
        pools = [
            [offered[k - k % count + (start + k) % count][i] for k in range(self._candidates)]
            for i, start in enumerate(first)
        ]
        return ActionBatch(self._choose(states, pools, rng))

    def _by_turns(self) -> list[Policy]:
        return [self._proposers[k % len(self._proposers)] for k in range(self._candidates)]


def _first(states: Sequence[AgentState], pools: list[list[str]], rng: np.random.Generator) -> list[str]:
    return [pool[0] for pool in pools]


def _random(states: Sequence[AgentState], pools: list[list[str]], rng: np.random.Generator) -> list[str]:
    return [pool[int(rng.integers(len(pool)))] for pool in pools]


def _best_by(scorer: Scorer, encoder: ActionEncoder) -> Choose:
    def choose(states: Sequence[AgentState], pools: list[list[str]], rng: np.random.Generator) -> list[str]:
        encoded = encoder.encode([DecisionState(s.task or "", s.observation, s.turn) for s in states], pools)
        best = best_of_each(scorer.score(encoded).mean, encoded.offsets)
        return [pool[row - start] for pool, row, start in zip(pools, best, encoded.offsets[:-1], strict=True)]

    return choose


def _play(env: Environment, policy: Policy, seed: int, sessions: int) -> dict[str, float]:
    played = env.play(policy, sessions, derive_seed(seed, "play"), env.gamma)
    return {"return": float(played.returns.mean()), "resolved": float(played.resolved.mean())}
