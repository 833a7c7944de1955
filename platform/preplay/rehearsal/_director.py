"""A director: a language model or any other adviser splits a mission, and imagination shows it what would come of it.

The adviser speaks in words; an adapter turns its high-level actions into primitive plans; the world model imagines
them all in one batch; the adviser judges what it is told of the imagined outcomes.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from preplay.errors import PreplayError
from preplay.rehearsal._adviser import Adviser
from preplay.rehearsal._beam import BeamSearch
from preplay.rehearsal._goal import GoalWorld, SubGoal
from preplay.rehearsal._proposers import value_plans
from preplay.rehearsal._scene import Aim, Proposer, Scene
from preplay.rehearsal._world import World

Describe = Callable[[np.ndarray], list[str]]
"""States [B, ...] in words."""


@dataclass(frozen=True)
class SkillAdapter:
    """High-level actions in words, each turned into primitive ones by planning for what it should reach.

    Args:
        skills: High-level action to the sub-goal it should reach.
        planner: Finds the primitive plan in imagination.
        steps: Longest primitive plan.
    """

    skills: Mapping[str, SubGoal]
    planner: Proposer = field(default_factory=BeamSearch)
    steps: int = 16

    def plan(self, action: str, world: World, state: np.ndarray, *, aim: Aim, seed: int) -> np.ndarray:
        """Primitive plan [steps, ...] for one state [1, ...]."""
        if action not in self.skills:
            raise PreplayError(
                f"there is no high-level action {action!r}.", fix=f"Known: {', '.join(self.skills)}."
            )
        scene = Scene(GoalWorld(world, self.skills[action]), state, self.steps, aim, seed, ("skill", action))
        plan = self.planner.propose(scene).best_plan
        if plan is None:
            raise TypeError(f"the adapter's planner {self.planner} makes no plans")
        return plan[0]


@dataclass(frozen=True)
class Directive:
    """What the director wants done next.

    Args:
        sub_goal: What for.
        action: The high-level action.
        plan: Primitive actions [H, ...], up to where the sub-goal is reached in imagination.
        reached: Whether it is reached in imagination.
        outcome: The imagined outcome in words.
    """

    sub_goal: SubGoal
    action: str
    plan: np.ndarray
    reached: bool
    outcome: str


@dataclass(frozen=True)
class Director:
    """Splits missions and directs.

    Args:
        adviser: Ranks sub-goals, high-level actions and imagined outcomes.
        world: The world model in which proposals are tried out.
        sub_goals: What a mission can be split into.
        adapter: High-level actions.
        describe: States in words.
        width: High-level actions, and sub-goals, that are tried out.
        aim: Discount and caution of planning.
        seed: For planners that draw.
    """

    adviser: Adviser
    world: World
    sub_goals: Sequence[SubGoal]
    adapter: SkillAdapter
    describe: Describe
    width: int = 2
    aim: Aim = field(default_factory=Aim)
    seed: int = 0

    def split(self, mission: str, state: np.ndarray) -> list[SubGoal]:
        """All sub-goals that are not reached in ``state`` [1, ...], in the order the adviser wants them."""
        order: list[SubGoal] = []
        left = [g for g in self.sub_goals if not bool(g.reached(state)[0])]
        while left:
            question = self._question(mission, state, [g.name for g in order]) + "\nThe next step is to"
            order.append(left.pop(int(self.adviser.rank(question, [g.name for g in left]).argmax())))
        return order

    def direct(self, mission: str, state: np.ndarray) -> Directive | None:
        """The next directive in ``state`` [1, ...]; None when every sub-goal is reached.

        Proposals whose sub-goal is reached in imagination come before all others; among them, and else among
        all, the adviser judges the imagined outcomes.
        """
        goals = self.split(mission, state)[: self.width]
        proposed = [(g, action) for g in goals for action in self._actions(mission, state, g)]
        if not proposed:
            return None
        tried = [self._try(goal, action, state) for goal, action in proposed]
        promising = [d for d in tried if d.reached] or tried
        outcomes = [d.outcome for d in promising]
        question = f"Mission: {mission}\nWhich of these outcomes is the best progress?"
        if len(set(outcomes)) == 1:
            return promising[0]
        return promising[int(self.adviser.rank(question, outcomes).argmax())]

    def _actions(self, mission: str, state: np.ndarray, goal: SubGoal) -> list[str]:
        names = list(self.adapter.skills)
        question = self._question(mission, state, []) + f"\nTo {goal.name}, the agent should"
        scores = self.adviser.rank(question, names)
        return [names[i] for i in np.argsort(-scores, kind="stable")[: self.width]]

    def _try(self, goal: SubGoal, action: str, state: np.ndarray) -> Directive:
        plan = self.adapter.plan(action, self.world, state, aim=self.aim, seed=self.seed)
        scene = Scene(GoalWorld(self.world, goal), state, len(plan), self.aim, self.seed, ("try", goal.name))
        branch = value_plans(scene, plan[None, None]).branches
        last = branch.last[0]
        reached = bool(goal.reached(branch.next_state[last : last + 1])[0])
        taken = int(branch.step[last]) + 1
        words = self.describe(branch.next_state[last : last + 1])[0]
        return Directive(goal, action, plan[:taken], reached, f"{words} ({taken} steps)")

    def _question(self, mission: str, state: np.ndarray, planned: list[str]) -> str:
        steps = f"\nSteps before: {', '.join(planned)}." if planned else ""
        return f"Mission: {mission}\n{self.describe(state)[0]}{steps}"
