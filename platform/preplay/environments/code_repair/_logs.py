"""Sessions of behaviour policies as turns: what was proposed, what was executed, how it went."""

import hashlib
import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from preplay.environments.code_repair._candidates import Candidate
from preplay.environments.code_repair._evidence import EVIDENCE
from preplay.environments.code_repair._generator import Generator
from preplay.environments.code_repair._grader import Grader
from preplay.environments.code_repair._session import Judge, Session, SessionConfig, judge_solved
from preplay.environments.code_repair._task import Task
from preplay.logs import TURN_SCHEMA
from preplay.seeding import numpy_rng

Behaviour = Callable[[Session, np.random.Generator], int]
"""Chooses the place of a candidate in the session's pool."""


def first_candidate(session: Session, rng: np.random.Generator) -> int:
    """What an agent without a critic does."""
    return 0


def random_candidate(session: Session, rng: np.random.Generator) -> int:
    """Any candidate."""
    return int(rng.integers(len(session.pool)))


def noisy_expert(grader: Grader, interrupted: float = 0.3) -> Behaviour:
    """Knows the grades and executes a solution where there is one, but is interrupted at random by a blind choice."""

    def choose(session: Session, rng: np.random.Generator) -> int:
        if rng.random() < interrupted:
            return random_candidate(session, rng)
        grades = grader.grade_many([(session.task, c.code) for c in session.pool])
        return int(np.argmax([grade.solved for grade in grades]))

    return choose


def log_sessions(
    tasks: Sequence[Task],
    generators: Sequence[Generator],
    behaviours: dict[str, Behaviour],
    grader: Grader,
    *,
    sessions: int,
    seed: int,
    config: SessionConfig | None = None,
    judge: Judge = judge_solved,
) -> pa.Table:
    """Turns of ``sessions`` sessions per behaviour, in the Turn schema; tasks and generators alternate.

    ``extras`` holds the pool as ``candidates`` and the environment's own ``task_name`` and ``solved``.
    """
    rows: list[dict[str, Any]] = []
    for name, behaviour in behaviours.items():
        for number in range(sessions):
            rng = numpy_rng(seed, "code-repair", name, number)
            task = tasks[number % len(tasks)]
            source = generators[int(rng.integers(len(generators)))]
            session = Session(task, source, grader, rng, config, judge)
            rows += _play(session, behaviour, rng, f"{name}/{seed}/{number}", name)
    return pa.Table.from_pylist(rows, schema=TURN_SCHEMA)


def _play(
    session: Session, behaviour: Behaviour, rng: np.random.Generator, session_id: str, policy: str
) -> list[dict]:
    rows: list[dict[str, Any]] = []
    while not rows or not (rows[-1]["terminated"] or rows[-1]["truncated"]):
        seen, pool, evidence, turn = session.observation, session.pool, session.evidence, session.turn
        chosen = pool[behaviour(session, rng)]
        result = session.step(chosen.code)
        rows.append(
            {
                "session_id": session_id,
                "turn": turn,
                "policy": policy,
                "task": session.task.prompt,
                "observation": seen,
                "action": chosen.code,
                "reward": result.reward,
                "next_observation": result.observation,
                "terminated": result.terminated,
                "truncated": result.truncated,
                "tokens": count_tokens(chosen.code),
                "extras": _extras(session, pool, evidence, result.solved),
                "source": f"code_repair:{session_id}",
                "record_hash": hashlib.sha256(f"{session_id}/{turn}".encode()).hexdigest(),
            }
        )
    return rows


def count_tokens(text: str) -> int:
    """Tokens of a text at four letters each, the usual rule of thumb."""
    return -(-len(text) // 4)


def _extras(
    session: Session, pool: list[Candidate], evidence: list[tuple[float, ...]] | None, solved: bool
) -> str:
    known: dict[str, Any] = {
        "task_name": session.task.name,
        "solved": solved,
        "candidates": [c.code for c in pool],
    }
    if evidence is not None:
        known |= {"evidence": evidence, "evidence_names": EVIDENCE}
    return json.dumps(known, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
