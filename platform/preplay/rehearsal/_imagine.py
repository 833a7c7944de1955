"""The one loop that imagines: B branches, all steps batched, under random numbers that belong to the branch.

Legend: B branches, A of them still running, N imagined steps of all branches together, T steps of a branch.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

from preplay.rehearsal._world import ImaginedStep, World
from preplay.seeding import numpy_rng

Ending = Literal["sample", "weigh"]
"""How a predicted termination acts: a draw ends the branch, or the rest of it is weighted by its survival."""

Reinject = Callable[[np.ndarray], np.ndarray]
"""Imagined states [A, ...] to the states they are replaced by."""

Value = Callable[[np.ndarray], np.ndarray]
"""States [A, ...] to the value of what follows them, float64 [A]."""

SURVIVAL_FLOOR = 1e-3


class Behaviour(Protocol):
    """Chooses actions inside imagination."""

    @property
    def draws(self) -> int:
        """Uniform numbers it needs per row and step."""
        ...

    def actions(
        self, world: World, step: int, rows: np.ndarray, state: np.ndarray, uniform: np.ndarray
    ) -> np.ndarray:
        """Actions [A, ...] of the branches ``rows`` (int64 [A]), given uniform draws float64 [A, draws]."""
        ...


@dataclass(frozen=True)
class Luck:
    """Random numbers of B branches; branches of one group share the world's, so that they can be compared.

    Args:
        seed: With ``keys`` names the streams.
        group: int64 [B] from 0. Branches that try different actions from one start belong to one group.
        keys: What the numbers are for.
    """

    seed: int
    group: np.ndarray
    keys: tuple[str | int, ...] = ()

    def normal(self, step: int, rows: np.ndarray, count: int) -> np.ndarray:
        """The world's noise, float64 [A, count]."""
        return self._groups("world", step).standard_normal((self._size, count))[self.group[rows]]

    def ending(self, step: int, rows: np.ndarray) -> np.ndarray:
        """What decides predicted terminations, uniform float64 [A]."""
        return self._groups("ending", step).random(self._size)[self.group[rows]]

    def behaviour(self, step: int, rows: np.ndarray, count: int) -> np.ndarray:
        """Draws of each branch of its own, uniform float64 [A, count]."""
        return self._groups("behaviour", step).random((len(self.group), count))[rows]

    @property
    def _size(self) -> int:
        return int(self.group.max(initial=-1)) + 1

    def _groups(self, what: str, step: int) -> np.random.Generator:
        return numpy_rng(self.seed, *self.keys, what, step)


@dataclass(frozen=True)
class Branches:
    """Imagined steps of ``count`` branches, ordered by step; every array has one row per step taken.

    Args:
        count: B.
        branch, step: int64 [N] which branch, and which of its steps from 0.
        state, action, reward, next_state: The transition.
        terminated: float64 [N]. With ``ending="sample"`` 0 or 1; with ``"weigh"`` the probability.
        truncated: bool [N] the session would be cut here. Neither flag: the branch just stopped (bootstrap there).
        survival: float64 [N] probability that the branch got to this step.
        uncertainty: float64 [N] of (state, action).
    """

    count: int
    branch: np.ndarray
    step: np.ndarray
    state: np.ndarray
    action: np.ndarray
    reward: np.ndarray
    next_state: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray
    survival: np.ndarray
    uncertainty: np.ndarray

    def __len__(self) -> int:
        return len(self.branch)

    @property
    def last(self) -> np.ndarray:
        """Row of each branch's last step, int64 [B]."""
        rows = np.empty(self.count, np.int64)
        rows[self.branch] = np.arange(len(self))  # ordered by step: the last write stays
        return rows

    def returns(self, gamma: float, *, value: Value | None = None, caution: float = 0.0) -> np.ndarray:
        """``sum_t gamma^t survival_t (reward_t - caution * uncertainty_t)`` of each branch, float64 [B].

        ``value`` is added, discounted and weighted by survival, where a branch stopped without an end.
        """
        gained = gamma**self.step * self.survival * (self.reward - caution * self.uncertainty)
        total = np.bincount(self.branch, gained, minlength=self.count)
        if value is not None:
            last = self.last[~self.truncated[self.last]]
            weight = gamma ** (self.step[last] + 1) * self.survival[last] * (1 - self.terminated[last])
            total[self.branch[last]] += weight * value(self.next_state[last])
        return total


def imagine(
    world: World,
    start: np.ndarray,
    behaviour: Behaviour,
    *,
    steps: int,
    luck: Luck,
    ending: Ending = "sample",
    reinject: Reinject | None = None,
    reinject_every: int = 0,
) -> Branches:
    """Imagine up to ``steps`` steps from every state of ``start`` [B, ...]; no branch goes on after its end.

    Args:
        ending: What a predicted termination does to a branch.
        reinject: Brings imagined states back to real ones after every ``reinject_every`` steps.
    """
    if len(luck.group) != len(start) or not len(start) or steps < 1:
        raise ValueError(f"{len(start)} starts, {len(luck.group)} groups of luck, {steps} steps")
    rows, state, survival = np.arange(len(start)), start, np.ones(len(start))
    taken: list[dict[str, np.ndarray]] = []
    for step in range(steps):
        action = behaviour.actions(world, step, rows, state, luck.behaviour(step, rows, behaviour.draws))
        result = world.step(state, action, luck.normal(step, rows, world.noise_dim))
        ends = _ends(result, luck.ending(step, rows), ending)
        taken.append(_columns(rows, step, state, action, result, ends, survival))
        survival = survival * (1 - ends)
        on = ~result.truncated & (survival > SURVIVAL_FLOOR)
        rows, state, survival = rows[on], result.state[on], survival[on]
        if not len(rows):
            break
        if reinject is not None and reinject_every and (step + 1) % reinject_every == 0:
            state = reinject(state)
    return Branches(len(start), **{k: np.concatenate([t[k] for t in taken]) for k in taken[0]})


def _ends(result: ImaginedStep, uniform: np.ndarray, ending: Ending) -> np.ndarray:
    return (uniform < result.terminated).astype(np.float64) if ending == "sample" else result.terminated


def _columns(
    rows: np.ndarray,
    step: int,
    state: np.ndarray,
    action: np.ndarray,
    result: ImaginedStep,
    ends: np.ndarray,
    survival: np.ndarray,
) -> dict[str, np.ndarray]:
    return {
        "branch": rows,
        "step": np.full(len(rows), step, np.int64),
        "state": state,
        "action": action,
        "reward": result.reward,
        "next_state": result.state,
        "terminated": ends,
        "truncated": result.truncated,
        "survival": survival,
        "uncertainty": result.uncertainty,
    }
