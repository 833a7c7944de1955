"""A model of two levels: the upper one predicts what becomes of sub-goals, the lower one predicts single steps.

Legend: G sub-goals, Z = 2^G upper states (which sub-goals are reached), B rows.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from preplay.rehearsal._beam import BeamSearch
from preplay.rehearsal._goal import GoalWorld, SubGoal
from preplay.rehearsal._imagine import Behaviour
from preplay.rehearsal._proposers import best_plan_behaviour, value_plans
from preplay.rehearsal._scene import Aim, Proposals, Proposer, Scene
from preplay.rehearsal._world import World

SWEEPS = 50


class SubGoalModel:
    """Counts of attempts at sub-goals: how likely one is completed, after how many steps, and what else changes.

    ``P(completed) = (done + doubt * guess) / (tries + doubt)``: a sub-goal that was never tried is thought possible,
    so that it is tried.

    Args:
        sub_goals: G of them; the last one is what it is all for.
        within: Steps that an attempt may take.
        guess: Completion probability before any attempt.
        doubt: Attempts that the guess is worth.
    """

    def __init__(self, sub_goals: Sequence[SubGoal], *, within: int, guess: float = 0.1, doubt: float = 1.0):
        if within < 1 or not 0 <= guess <= 1 or doubt <= 0:
            raise ValueError(f"within {within}, guess {guess}, doubt {doubt}")
        self.sub_goals, self.within, self.guess, self.doubt = tuple(sub_goals), within, guess, doubt
        upper, goals = 2 ** len(self.sub_goals), len(self.sub_goals)
        self.tries, self.done, self.steps = np.zeros((3, upper, goals))
        self.after = np.zeros((upper, goals, upper))

    def upper(self, state: np.ndarray) -> np.ndarray:
        """Which sub-goals are reached, as the bits of a number: int64 [B]."""
        bits = [goal.reached(state).astype(np.int64) << place for place, goal in enumerate(self.sub_goals)]
        return np.sum(bits, axis=0)

    def record(
        self, before: np.ndarray, goal: int, completed: np.ndarray, steps: np.ndarray, after: np.ndarray
    ) -> None:
        """Attempts at one sub-goal, real or imagined: upper states int64 [B], bool [B], steps [B], int64 [B]."""
        upper = len(self.tries)
        won, ended = before[completed], after[completed]
        self.tries[:, goal] += np.bincount(before, minlength=upper)
        self.done[:, goal] += np.bincount(won, minlength=upper)
        self.steps[:, goal] += np.bincount(won, steps[completed], minlength=upper)
        self.after[:, goal] += np.bincount(won * upper + ended, minlength=upper**2).reshape(upper, upper)

    def rehearse(
        self, world: World, state: np.ndarray, planner: Proposer, *, aim: Aim, seed: int, round_: int
    ) -> np.ndarray:
        """Attempt every open sub-goal from every state [B, ...] in imagination, and record what came of it.

        Give states that can really occur: the upper level takes all states with the same sub-goals for alike.

        Returns:
            The states in which completed attempts ended: where the next attempts can start from.
        """
        before, reached = self.upper(state), [state[:0]]
        for number, goal in enumerate(self.sub_goals):
            rows = np.flatnonzero(~goal.reached(state))
            if not len(rows):
                continue
            keys = ("sub-goal", number, round_)
            scene = Scene(GoalWorld(world, goal), state[rows], self.within, aim, seed, keys)
            branches = value_plans(scene, _best_plans(planner.propose(scene))).branches
            last = branches.last[:: aim.particles]
            ended = branches.next_state[last]
            completed = goal.reached(ended)
            self.record(before[rows], number, completed, branches.step[last] + 1, self.upper(ended))
            reached.append(ended[completed])
        return np.concatenate(reached)

    def completion(self) -> np.ndarray:
        """Probability that an attempt completes a sub-goal, float64 [Z, G]; 0 where it is reached already."""
        chance = (self.done + self.doubt * self.guess) / (self.tries + self.doubt)
        return chance * self._open

    def duration(self) -> np.ndarray:
        """Mean steps of a completed attempt, float64 [Z, G]; ``within`` where there was none."""
        return np.where(self.done > 0, self.steps / np.maximum(self.done, 1), self.within)

    def values(self, gamma: float) -> np.ndarray:
        """Value of going for each sub-goal next, float64 [Z, G]: 1 for the last one, discounted by steps."""
        reward = np.zeros(len(self.tries))
        reward[self._reached[:, -1]] = 1.0
        value, gain = reward, np.zeros_like(self.tries)
        for _ in range(SWEEPS):
            gain = self.completion() * gamma ** self.duration() * (self._next() @ value)
            value = np.where(reward > 0, 1.0, gain.max(1))
        return gain

    @property
    def _reached(self) -> np.ndarray:
        """bool [Z, G]."""
        return (np.arange(len(self.tries))[:, None] >> np.arange(len(self.sub_goals))) & 1 > 0

    @property
    def _open(self) -> np.ndarray:
        return ~self._reached

    def _next(self) -> np.ndarray:
        """Where a completed attempt leads, float64 [Z, G, Z]; unseen ones change the sub-goal's own bit only."""
        upper, goals = np.indices(self.tries.shape)
        own = np.eye(len(self.tries))[upper | (1 << goals)]
        seen = self.after.sum(-1, keepdims=True)
        return np.where(seen > 0, self.after / np.maximum(seen, 1), own)


@dataclass(frozen=True)
class TwoLevel:
    """Chooses the sub-goal by the upper model and plans towards it in the lower one; satisfies ``Proposer``.

    Args:
        model: The upper level.
        planner: Plans in the world, whose only reward is then the chosen sub-goal.
    """

    model: SubGoalModel
    planner: Proposer = field(default_factory=BeamSearch)

    def chosen(self, state: np.ndarray, gamma: float) -> np.ndarray:
        """The sub-goal to go for in every state, int64 [B]."""
        return self.model.values(gamma)[self.model.upper(state)].argmax(1)

    def propose(self, scene: Scene) -> Proposals:
        """One plan per state; its value is the one it has in the world itself."""
        chosen = self.chosen(scene.state, scene.aim.gamma)
        plans = np.empty(0)
        for number in np.unique(chosen):
            rows = np.flatnonzero(chosen == number)
            world = GoalWorld(scene.world, self.model.sub_goals[number])
            keys = (*scene.keys, "towards", int(number))
            asked = Scene(world, scene.state[rows], scene.steps, scene.aim, scene.seed, keys)
            found = _best_plans(self.planner.propose(asked))
            if not len(plans):
                plans = np.empty((len(chosen), *found.shape[1:]), found.dtype)
            plans[rows] = found
        return value_plans(scene, plans)

    def behaviour(self, scene: Scene) -> Behaviour:
        """The plan."""
        return best_plan_behaviour(self.propose(scene))


def _best_plans(proposals: Proposals) -> np.ndarray:
    """[B, 1, H, ...]."""
    plan = proposals.best_plan
    if plan is None:
        raise TypeError("a two-level model needs a planner that makes plans")
    return plan[:, None]
