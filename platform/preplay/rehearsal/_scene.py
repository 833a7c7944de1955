"""What a proposer is asked, and what it answers.

Legend: B starts, K candidates per start, P particles per candidate, H steps of a plan.
"""

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from preplay.rehearsal._imagine import Behaviour, Branches, Luck, Value, imagine
from preplay.rehearsal._world import World


@dataclass(frozen=True)
class Aim:
    """How imagined branches are valued.

    Args:
        gamma: Discount per step.
        caution: Price of one unit of the world's uncertainty per step (Yu et al. 2020, MOPO); 0 trusts the model.
        particles: P, branches per candidate whose mean counts. One is enough where the world is deterministic.
        value: Value of states where a branch stops without an end; nothing by default.
    """

    gamma: float = 0.97
    caution: float = 0.0
    particles: int = 1
    value: Value | None = None

    def __post_init__(self):
        if not 0 < self.gamma <= 1 or self.caution < 0 or self.particles < 1:
            raise ValueError(f"gamma {self.gamma}, caution {self.caution}, particles {self.particles}")


@dataclass(frozen=True)
class Scene:
    """B states in a world from which something is to be proposed.

    Args:
        world: What is imagined.
        state: [B, ...].
        steps: H.
        aim: What is good.
        seed: With ``keys`` names all draws. Candidates of one start always share the world's luck.
        warm: Plans [B, H, ...] from the step before, tried as one candidate; None at the start of a session.
    """

    world: World
    state: np.ndarray
    steps: int
    aim: Aim = Aim()
    seed: int = 0
    keys: tuple[str | int, ...] = ()
    warm: np.ndarray | None = None

    def at(self, state: np.ndarray, *keys: str | int) -> "Scene":
        """The same question from other states, under other luck."""
        return replace(self, state=state, keys=(*self.keys, *keys), warm=None)

    def luck(self, candidates: int = 1) -> Luck:
        """For B * K * P branches, ordered like that; the world's luck is the same for every candidate."""
        rows = np.arange(len(self.state) * candidates * self.aim.particles).reshape(
            len(self.state), candidates, self.aim.particles
        )
        start, particle = rows // (candidates * self.aim.particles), rows % self.aim.particles
        return Luck(self.seed, (start * self.aim.particles + particle).reshape(-1), self.keys)

    def repeated(self, array: np.ndarray) -> np.ndarray:
        """[B, K, ...] for every particle: [B * K * P, ...]."""
        return np.repeat(array.reshape(-1, *array.shape[2:]), self.aim.particles, 0)


@dataclass(frozen=True)
class Proposals:
    """K candidates for each of B starts.

    Args:
        value: float64 [B, K]; minus infinity where imagination gave no number.
        first: [B, K, ...] first action.
        branches: The imagined branches behind the values, B * K * P of them.
        plan: [B, K, H, ...] where the candidates are plans; None where they react.
    """

    value: np.ndarray
    first: np.ndarray
    branches: Branches
    plan: np.ndarray | None = None

    @property
    def best(self) -> np.ndarray:
        """The most valued candidate of each start, int64 [B]."""
        return self.value.argmax(1)

    @property
    def best_value(self) -> np.ndarray:
        """Its value, float64 [B]."""
        return self.value.max(1)

    @property
    def best_action(self) -> np.ndarray:
        """Its first action, [B, ...]."""
        return self.first[np.arange(len(self.first)), self.best]

    @property
    def best_plan(self) -> np.ndarray | None:
        """[B, H, ...] where the candidates are plans."""
        return None if self.plan is None else self.plan[np.arange(len(self.plan)), self.best]


class Proposer(Protocol):
    """Proposes what to do from states, having imagined what would come of it."""

    def propose(self, scene: Scene) -> Proposals:
        """Candidates and their imagined values."""
        ...

    def behaviour(self, scene: Scene) -> Behaviour:
        """How to act in one branch from each state of the scene when its transitions are wanted for training."""
        ...


def try_out(scene: Scene, behaviour: Behaviour, candidates: int) -> tuple[Branches, np.ndarray]:
    """Imagine K candidates from every state; the branches and the values float64 [B, K].

    Predicted ends weigh what follows them. A value that is no number counts as minus infinity: it must never win.
    """
    aim, count = scene.aim, len(scene.state)
    start = np.repeat(scene.state, candidates * aim.particles, 0)
    branches = imagine(
        scene.world, start, behaviour, steps=scene.steps, luck=scene.luck(candidates), ending="weigh"
    )
    returns = branches.returns(aim.gamma, value=aim.value, caution=aim.caution)
    value = returns.reshape(count, candidates, aim.particles).mean(2)
    return branches, np.where(np.isnan(value), -np.inf, value)


def first_actions(branches: Branches, scene: Scene, candidates: int) -> np.ndarray:
    """First action of every candidate, [B, K, ...] (its first particle's)."""
    opening = branches.action[: branches.count]
    return opening.reshape(len(scene.state), candidates, scene.aim.particles, *opening.shape[1:])[:, :, 0]
