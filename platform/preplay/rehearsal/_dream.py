"""Dreaming: rehearsal from the buffer while there is no task, so that any later one is half learned already.

Legend: N imagined steps, R relabelled transitions.
"""

from dataclasses import dataclass

import numpy as np

from preplay.rehearsal._behaviour import RandomActions, action_numbers
from preplay.rehearsal._imagine import Behaviour, Branches, Luck, imagine
from preplay.rehearsal._world import World
from preplay.seeding import numpy_rng


@dataclass(frozen=True)
class GoalTransitions:
    """Transitions that count as steps towards goals, R of each.

    Args:
        state, action, next_state: The transition.
        goal: [R, ...] a state that was to be reached.
        reached: bool [R] whether ``next_state`` is it; reaching it pays 1 and ends.
    """

    state: np.ndarray
    action: np.ndarray
    next_state: np.ndarray
    goal: np.ndarray
    reached: np.ndarray

    def __len__(self) -> int:
        return len(self.reached)


def dream(
    world: World,
    start: np.ndarray,
    *,
    steps: int,
    seed: int,
    round_: int,
    goals: int = 4,
    behaviour: Behaviour | None = None,
) -> GoalTransitions:
    """Imagine from real states [B, ...] without a task and learn from whatever happened to be reached.

    The world's rewards are not looked at. See :func:`relabel`.

    Args:
        goals: Goals per imagined step.
        behaviour: How to act in dreams; at random by default.
    """
    acting = behaviour or RandomActions(action_numbers(world.action_space))
    luck = Luck(seed, np.arange(len(start)), ("dream", round_))
    branches = imagine(world, start, acting, steps=steps, luck=luck)
    return relabel(branches, goals, numpy_rng(seed, "dream goals", round_))


def relabel(
    branches: Branches, goals: int, rng: np.random.Generator, *, elsewhere: float = 0.5
) -> GoalTransitions:
    """Every step with ``goals`` goals: states that the same branch reached at or after it (Andrychowicz et al. 2017).

    Real sessions have the same columns as imagined branches.

    Args:
        elsewhere: Share of goals that are drawn from all branches instead. They are reached by chance only, but
            carry what is known about them from one branch to another.
    """
    order = np.lexsort((branches.step, branches.branch))
    last = np.append(branches.branch[order][1:] != branches.branch[order][:-1], True)
    end = np.flatnonzero(last)[np.cumsum(np.append(0, last[:-1]))]  # per row in order: its branch's last row
    row = np.repeat(np.arange(len(order)), goals)
    later = row + (rng.random(len(row)) * (end[row] - row + 1)).astype(np.int64)
    anywhere = rng.integers(len(order), size=len(row))
    chosen = np.where(rng.random(len(row)) < elsewhere, anywhere, later)
    at, goal = order[row], branches.next_state[order[chosen]]
    after = branches.next_state[at]
    same = (after == goal).reshape(len(at), -1).all(1)
    return GoalTransitions(branches.state[at], branches.action[at], after, goal, same)
