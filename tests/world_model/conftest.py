"""A small known world, embedded by hand, that every dynamics must learn.

Positions 0..7 on a ring; actions left, stay, right. A move succeeds with probability 0.7 and else goes the other
way, so the next observation has two modes. Reaching 0 gives +1 and ends the session, any other turn costs 0.05;
sessions are cut (truncated) after 10 turns. Each position and action has several wordings.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pytest

from preplay.embedding import EmbeddedTurns, EncoderFingerprint, TextBank
from preplay.logs import TURN_SCHEMA

POSITIONS, WORDINGS, DIMENSION, HORIZON = 8, 6, 32, 10
ACTIONS = ("left", "stay", "right")
SUCCESS = 0.7
FINGERPRINT = EncoderFingerprint(
    model="by hand", weights_sha256="0", pooling="mean", dtype="float32", max_tokens=8, dimension=DIMENSION
)


def make_bank(rng: np.random.Generator) -> TextBank:
    names = [f"at {p}" for p in range(POSITIONS)] + list(ACTIONS)
    centers = rng.normal(size=(len(names), DIMENSION))
    texts, rows = [], []
    for name, center in zip(names, centers, strict=True):
        for wording in range(WORDINGS):
            texts.append(f"{name} ({wording})")
            row = center + 0.25 * rng.normal(size=DIMENSION)
            rows.append(row / np.linalg.norm(row))
    return TextBank(texts, np.array(rows, np.float32))


def transition(position: int, action: int, rng: np.random.Generator) -> tuple[int, float, bool]:
    move = action - 1
    position = (position + (move if rng.random() < SUCCESS else -move)) % POSITIONS
    return position, (1.0 if position == 0 else -0.05), position == 0


@dataclass(frozen=True)
class RingSession:
    positions: list[int]
    actions: list[int]
    rewards: list[float]
    terminated: bool


def simulate(sessions: int, rng: np.random.Generator, right: float = 1 / 3) -> list[RingSession]:
    done = []
    for _ in range(sessions):
        positions, actions, rewards, ended = [int(rng.integers(1, POSITIONS))], [], [], False
        while not ended and len(actions) < HORIZON:
            action = int(rng.choice(3, p=[(1 - right) / 2, (1 - right) / 2, right]))
            position, reward, ended = transition(positions[-1], action, rng)
            positions.append(position)
            actions.append(action)
            rewards.append(reward)
        done.append(RingSession(positions, actions, rewards, ended))
    return done


def embedded(sessions: list[RingSession], bank: TextBank, rng: np.random.Generator) -> EmbeddedTurns:
    rows, ids = [], []
    for number, session in enumerate(sessions):
        words = [p * WORDINGS + int(rng.integers(WORDINGS)) for p in session.positions]
        for t, action in enumerate(session.actions):
            said = (POSITIONS + action) * WORDINGS + int(rng.integers(WORDINGS))
            last = t == len(session.actions) - 1
            ids.append((-1, words[t], said, words[t + 1]))
            rows.append(
                dict(
                    session_id=f"s{number:05d}",
                    turn=t,
                    policy="log",
                    observation=bank.texts[words[t]],
                    action=bank.texts[said],
                    reward=session.rewards[t],
                    next_observation=bank.texts[words[t + 1]],
                    terminated=last and session.terminated,
                    truncated=last and not session.terminated,
                    extras="{}",
                    source="ring",
                    record_hash="",
                )
            )
    table = pa.Table.from_pylist(rows, schema=TURN_SCHEMA)
    columns = np.array(ids, np.int64).T
    return EmbeddedTurns(table, bank, *columns, FINGERPRINT)


def position_of(text: str) -> int:
    return int(text.split()[1])


@pytest.fixture(scope="session")
def ring() -> EmbeddedTurns:
    rng = np.random.default_rng(0)
    bank = make_bank(rng)
    return embedded(simulate(400, rng), bank, rng)
