"""Proposers that do not search: random plans, a policy, every first action, and whatever a callable suggests."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from preplay.errors import PreplayError
from preplay.rehearsal._behaviour import (
    FirstThen,
    ImaginedPolicy,
    PlannedActions,
    PolicyActions,
    Probabilities,
    RandomActions,
    action_numbers,
    uniform_actions,
)
from preplay.rehearsal._imagine import Behaviour
from preplay.rehearsal._scene import Proposals, Scene, try_out
from preplay.rehearsal._world import action_count
from preplay.seeding import numpy_rng

Suggest = Callable[[Scene], np.ndarray]
"""Plans for every state of a scene, [B, K, H, ...]: a heuristic's, another planner's, a language model's."""


@dataclass(frozen=True)
class RandomPlans:
    """``candidates`` uniformly random plans per start (random shooting)."""

    candidates: int = 64

    def propose(self, scene: Scene) -> Proposals:
        """All of them, valued."""
        space = scene.world.action_space
        shape = (len(scene.state), self.candidates, scene.steps, action_numbers(space))
        uniform = numpy_rng(scene.seed, *scene.keys, "random plans").random(shape)
        return value_plans(scene, uniform_actions(space, uniform))

    def behaviour(self, scene: Scene) -> Behaviour:
        """Random actions: training wants what a random plan meets, not the best of many."""
        return RandomActions(action_numbers(scene.world.action_space))


@dataclass(frozen=True)
class PolicyBranches:
    """What a policy would do, ``candidates`` times from each start; its particles share the first action."""

    policy: ImaginedPolicy
    candidates: int = 1

    def propose(self, scene: Scene) -> Proposals:
        """The policy's own branches, valued."""
        starts, count = len(scene.state), self.candidates
        seen = np.repeat(scene.world.observe(scene.state), count, 0)
        uniform = numpy_rng(scene.seed, *scene.keys, "first actions").random(starts * count)
        chosen = self.policy(seen, uniform)
        first = chosen.reshape(starts, count, *chosen.shape[1:])
        behaviour = FirstThen(scene.repeated(first), PolicyActions(self.policy))
        branches, value = try_out(scene, behaviour, count)
        return Proposals(value, first, branches)

    def behaviour(self, scene: Scene) -> Behaviour:
        """The policy."""
        return PolicyActions(self.policy)


@dataclass(frozen=True)
class EachActionThen:
    """Discrete first actions, each followed by a policy: one step of policy improvement (Tesauro & Galperin 1996).

    Args:
        policy: Acts after the first step.
        prior: Probabilities of the first action. Where given, only the ``most`` likely actions are tried: what the
            logs never did is where a learned model is wrong (Fujimoto et al. 2019, BCQ).
        most: How many.
    """

    policy: ImaginedPolicy
    prior: Probabilities | None = None
    most: int = 8

    def propose(self, scene: Scene) -> Proposals:
        """One candidate per action that is tried."""
        first = self._first(scene)
        behaviour = FirstThen(scene.repeated(first), PolicyActions(self.policy))
        branches, value = try_out(scene, behaviour, first.shape[1])
        return Proposals(value, first, branches)

    def behaviour(self, scene: Scene) -> Behaviour:
        """The best first action, then the policy."""
        return FirstThen(self.propose(scene).best_action, PolicyActions(self.policy))

    def _first(self, scene: Scene) -> np.ndarray:
        """int64 [B, K]."""
        if self.prior is None:
            return np.tile(np.arange(action_count(scene.world)), (len(scene.state), 1))
        likely = np.argsort(-self.prior(scene.world.observe(scene.state)), axis=1, kind="stable")
        return likely[:, : self.most]


@dataclass(frozen=True)
class SuggestedPlans:
    """Plans of any callable, judged by imagination."""

    suggest: Suggest

    def propose(self, scene: Scene) -> Proposals:
        """The suggestions, valued.

        Raises:
            PreplayError: When there are not K >= 1 plans of H steps for every state.
        """
        plans = np.asarray(self.suggest(scene))
        if plans.ndim < 3 or plans.shape[0] != len(scene.state) or plans.shape[2] != scene.steps:
            raise PreplayError(
                f"suggested plans have shape {plans.shape}, but {len(scene.state)} states need [B, K, H] plans "
                f"of {scene.steps} steps.",
                fix="Return one array with the same number of plans for every state.",
            )
        return value_plans(scene, plans)

    def behaviour(self, scene: Scene) -> Behaviour:
        """The best suggestion."""
        return best_plan_behaviour(self.propose(scene))


def value_plans(scene: Scene, plans: np.ndarray) -> Proposals:
    """Imagine given plans [B, K, H, ...]."""
    branches, value = try_out(scene, PlannedActions(scene.repeated(plans)), plans.shape[1])
    return Proposals(value, plans[:, :, 0], branches, plans)


def best_plan_behaviour(proposals: Proposals) -> PlannedActions:
    """The best plan of every start."""
    plan = proposals.best_plan
    assert plan is not None
    return PlannedActions(plan)
