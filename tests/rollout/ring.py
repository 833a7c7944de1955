"""A world that can be computed by hand: five places on a ring, and policies that walk on it.

"next" goes one place on, "stay" stays, "gamble" goes on when the noise is positive. Leaving place p earns p + 1.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from preplay.embedding import CachedEncoder, EncoderConfig, EncoderFingerprint, TextBank
from preplay.policies import ActionBatch, AgentState
from preplay.rollout import InitialStates
from preplay.world_model import Transition, WorldState

PLACES = [f"place {p}" for p in range(5)]
ACTIONS = ["next", "stay", "gamble"]
BANK = TextBank([*ACTIONS, "walk", *PLACES], np.eye(9, dtype=np.float32))
FINGERPRINT = EncoderFingerprint(
    model="one-hot", weights_sha256="", pooling="", dtype="float32", max_tokens=1, dimension=9
)


@dataclass
class Ring:
    """``ends[p]`` is the probability that arriving at place p ends the session."""

    ends: tuple[float, ...] = (0.0,) * 5
    horizon: int = 3
    texts: Sequence[str] = field(default_factory=lambda: PLACES)
    noise_dim: int = 1

    def start(
        self,
        observation: Tensor,
        *,
        task: Tensor | None = None,
        history: Tensor | None = None,
        turn: Tensor | None = None,
    ) -> WorldState:
        place = (observation.argmax(1) - 4).float()[:, None, None]
        return WorldState(
            place, torch.zeros(len(place)) if turn is None else turn, torch.zeros(len(place), 0)
        )

    def step(self, state: WorldState, action: Tensor, noise: Tensor) -> Transition:
        place, chosen = state.window[:, 0, 0].long(), action.argmax(1)
        moves = (chosen == 0) | ((chosen == 2) & (noise[:, 0] > 0))
        after = (place + moves) % 5
        distance = torch.full((len(place),), 0.5)
        return Transition(
            after,
            (place + 1).double(),
            torch.tensor(self.ends).double()[after],
            distance,
            2 * distance,
            WorldState(after.float()[:, None, None], state.turn + 1, state.context),
        )


@dataclass
class Walker:
    """Does what ``rule`` says; ``uniform`` draws in [0, 1) are given to it, one per state. Keeps what it saw."""

    rule: Callable[[AgentState, float], str]
    name: str = "walker"
    reads: int = 0
    deterministic: bool = True
    delay_s: float = 0.0
    seen: list[AgentState] = field(default_factory=list)

    def act(self, states: Sequence[AgentState], rng: np.random.Generator) -> ActionBatch:
        time.sleep(self.delay_s)
        self.seen += states
        draws = rng.random(len(states))
        return ActionBatch([self.rule(s, float(u)) for s, u in zip(states, draws, strict=True)])


def go(state: AgentState, draw: float) -> str:
    """Always on."""
    return "next"


def gamble(state: AgentState, draw: float) -> str:
    """Leaves it to the world's noise."""
    return "gamble"


def coin(state: AgentState, draw: float) -> str:
    """On with probability one half."""
    return "next" if draw < 0.5 else "stay"


def encoder() -> CachedEncoder:
    """One-hot embeddings; there is no model behind it."""
    return CachedEncoder(EncoderConfig(model="there is none"), BANK, expect=FINGERPRINT)


def starts(places: list[int], turn: int = 0, history: list[tuple[str, str]] | None = None) -> InitialStates:
    """Sessions at these places, all with the task "walk" and the same history."""
    n, index = len(places), BANK.index
    pairs = [[index[o], index[a]] for o, a in history or []]
    return InitialStates(
        BANK,
        np.array([index[PLACES[p]] for p in places]),
        np.full(n, index["walk"]),
        np.tile(np.array(pairs, np.int64).reshape(1, -1, 2), (n, 1, 1)),
        np.full(n, turn),
    )
