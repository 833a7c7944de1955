"""Several turns on one question: the logged models stand by, and each turn one of them takes its next logged step.

The databases are read-only and a model sees its own results alone, so what it did next in the logs is what it would
do next here, whoever acts in between: every state is reproducible, and every action is executed. Looking at the
schema earns nothing itself and makes the same model's later queries right: credit spans turns.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from preplay.environments.sql_shell._grounding import GROUNDING
from preplay.environments.sql_shell._names import query_names
from preplay.environments.sql_shell._pools import LoggedModels
from preplay.environments.sql_shell._shell import QueryResult, Question
from preplay.logs import TURN_SCHEMA
from preplay.seeding import numpy_rng

_OWN = ("own_steps", "own_failed", "last_failed", "last_empty", "names_shown", "tried", "acted_last")
_SHOWN_CHARACTERS = 2000
STAYS = 0.9
"""Probability that the model that acted acts again: a session of one model, interrupted at random."""


@dataclass(frozen=True)
class RelayStep:
    """What executing an action led to; the reward is 1 for the right rows, which ends the session."""

    reward: float
    terminated: bool
    truncated: bool


@dataclass
class _Agent:
    """One model's session so far: steps it has ahead, and what it was shown."""

    name: str
    actions: list[str]
    ground: list[list[float]]
    done: int = 0
    failed: int = 0
    last: QueryResult | None = None
    shown: str = ""


@dataclass
class Relay:
    """One session.

    Args:
        models: The logged models.
        question: What they work on.
        budget: Executed actions at most.
    """

    models: LoggedModels
    question: Question
    budget: int
    turn: int = 0
    observation: str = ""
    _agents: list[_Agent] = field(default_factory=list, repr=False)
    _tried: set[str] = field(default_factory=set, repr=False)
    _last: str = ""

    def __post_init__(self):
        ground = self.models.grounded(self.question, self.budget)
        for name, steps in self.models.sessions(self.question).items():
            actions = [step.action for step in steps[: self.budget]]
            self._agents.append(_Agent(name, actions, ground[name]))

    @property
    def evidence_names(self) -> tuple[str, ...]:
        """Names of the numbers in :attr:`evidence`."""
        return (*GROUNDING, *(f"is_{name}" for name in self.models.models), *_OWN)

    @property
    def offers(self) -> list[tuple[str, str]]:
        """(model, its next action) of every model that has one; never empty before the end."""
        return [(agent.name, agent.actions[agent.done]) for agent in self._waiting]

    @property
    def evidence(self) -> list[tuple[float, ...]]:
        """What may be known about each offer before it is executed."""
        return [self._evidence(agent) for agent in self._waiting]

    def step(self, place: int) -> RelayStep:
        """Execute the offer at this place."""
        agent = self._waiting[place]
        action, shell = agent.actions[agent.done], self.models.shell
        result = shell.execute(self.question.database, action)
        agent.done += 1
        agent.failed += result.error is not None
        agent.last, self._last = result, agent.name
        self.observation = f"{agent.name}: {result.error or result.rows!r}"[:_SHOWN_CHARACTERS]
        agent.shown += " " + str(result.rows)[:_SHOWN_CHARACTERS].lower()
        self._tried.add(_plain(action))
        self.turn += 1
        solved = shell.solves(self.question, action)
        return RelayStep(
            float(solved), solved, not solved and (self.turn >= self.budget or not self._waiting)
        )

    @property
    def _waiting(self) -> list[_Agent]:
        return [agent for agent in self._agents if agent.done < len(agent.actions)]

    def _evidence(self, agent: _Agent) -> tuple[float, ...]:
        action, last = agent.actions[agent.done], agent.last
        names = query_names(action)
        named = names.tables | names.columns
        return (
            *agent.ground[agent.done],
            *(float(agent.name == name) for name in self.models.models),
            agent.done / self.budget,
            agent.failed / max(1, agent.done),
            float(last is not None and last.error is not None),
            float(last is not None and last.error is None and not last.rows),
            sum(name in agent.shown for name in named) / len(named) if named and agent.done else 0.0,
            float(_plain(action) in self._tried),
            float(agent.name == self._last),
        )


def log_relays(
    models: LoggedModels, questions: Sequence[Question], *, sessions: int, budget: int, seed: int
) -> pa.Table:
    """Turns of sessions in which a model drawn at random acts; each turn another may be drawn (:data:`STAYS`)."""
    rows: list[dict[str, Any]] = []
    for question in questions:
        for number in range(sessions):
            rng = numpy_rng(seed, "relay", question.number, number)
            rows += _log(Relay(models, question, budget), rng, f"{question.number}/{seed}/{number}")
    return pa.Table.from_pylist(rows, schema=TURN_SCHEMA)


def _log(relay: Relay, rng: np.random.Generator, session_id: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    model = ""
    while not rows or not (rows[-1]["terminated"] or rows[-1]["truncated"]):
        offers, evidence, seen, turn = relay.offers, relay.evidence, relay.observation, relay.turn
        standing = [name for name, _ in offers]
        if model not in standing or rng.random() > STAYS:
            model = standing[int(rng.integers(len(standing)))]
        place = standing.index(model)
        done = relay.step(place)
        extras = {
            "task_name": relay.question.database,
            "candidates": [action for _, action in offers],
            "chosen": place,
            "evidence": evidence,
            "evidence_names": relay.evidence_names,
            "solved": done.terminated,
        }
        rows.append(
            {
                "session_id": session_id,
                "turn": turn,
                "policy": "relay",
                "task": relay.question.text,
                "observation": seen,
                "action": offers[place][1],
                "reward": done.reward,
                "next_observation": relay.observation,
                "terminated": done.terminated,
                "truncated": done.truncated,
                "extras": json.dumps(extras, ensure_ascii=False),
                "source": f"sql_shell:{session_id}",
                "record_hash": hashlib.sha256(f"{session_id}/{turn}".encode()).hexdigest(),
            }
        )
    return rows


def _plain(action: str) -> str:
    return " ".join(action.lower().rstrip("; ").split())
