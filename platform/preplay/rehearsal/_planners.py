"""Planners that search: the cross-entropy method over discrete and continuous plans, and replanning at every step.

Legend: B starts, K population, E elites, H steps, A actions (or numbers of one), legend of rows as in ``_scene``.
"""

from dataclasses import dataclass

import numpy as np
from gymnasium.spaces import Box

from preplay.rehearsal._behaviour import Probabilities
from preplay.rehearsal._imagine import Behaviour
from preplay.rehearsal._proposers import best_plan_behaviour, value_plans
from preplay.rehearsal._scene import Proposals, Proposer, Scene, first_actions, try_out
from preplay.rehearsal._world import World, action_count
from preplay.seeding import numpy_rng


@dataclass(frozen=True)
class CategoricalCEM:
    """Cross-entropy method over plans of discrete actions (Rubinstein 1999), one distribution per step.

    ``p <- smoothing * p + (1 - smoothing) * frequency among the elites``, then ``floor`` of uniform choice is mixed
    in, so that an action that no elite used can still come back.

    Args:
        population: K, plans per iteration and start.
        elites: E, best plans that the next iteration imitates.
        iterations: Rounds of imagination.
        smoothing: Share of the previous distribution that stays.
        floor: Share of uniform choice in every distribution, in (0, 1].
        prior: Probabilities that the search starts from at every step, given what is seen now; uniform by default.
    """

    population: int = 64
    elites: int = 8
    iterations: int = 4
    smoothing: float = 0.2
    floor: float = 0.05
    prior: Probabilities | None = None

    def __post_init__(self):
        _check_search(self.population, self.elites, self.iterations)
        if not 0 <= self.smoothing < 1 or not 0 < self.floor <= 1:
            raise ValueError(f"smoothing {self.smoothing} not in [0, 1) or floor {self.floor} not in (0, 1]")

    def propose(self, scene: Scene) -> Proposals:
        """The last population and the best plan of all, which is its first candidate."""
        p = self._start(scene)
        best = scene.warm[:, None] if scene.warm is not None else None
        proposals = None
        for iteration in range(self.iterations):
            plans = self._draw(scene, p, iteration)
            if best is not None:
                plans[:, :1] = best
            proposals = value_plans(scene, plans)
            best = _best(proposals)
            p = self._imitate(p, elite_plans(proposals, self.elites))
        assert proposals is not None
        return proposals

    def behaviour(self, scene: Scene) -> Behaviour:
        """The best plan."""
        return best_plan_behaviour(self.propose(scene))

    def _start(self, scene: Scene) -> np.ndarray:
        """float64 [B, H, A]."""
        count = action_count(scene.world)
        first = np.full((len(scene.state), count), 1 / count)
        if self.prior is not None:
            first = self.prior(scene.world.observe(scene.state))
        return self._mixed(np.repeat(first[:, None], scene.steps, 1))

    def _draw(self, scene: Scene, p: np.ndarray, iteration: int) -> np.ndarray:
        """Plans int64 [B, K, H]."""
        rng = numpy_rng(scene.seed, *scene.keys, "categorical CEM", iteration)
        uniform = rng.random((len(p), self.population, p.shape[1]))
        cumulative = p.cumsum(-1)[:, None, :, :-1]
        return (uniform[..., None] >= cumulative).sum(-1)

    def _imitate(self, p: np.ndarray, elites: np.ndarray) -> np.ndarray:
        frequency = np.eye(p.shape[-1])[elites].mean(1)
        return self._mixed(self.smoothing * p + (1 - self.smoothing) * frequency)

    def _mixed(self, p: np.ndarray) -> np.ndarray:
        return (1 - self.floor) * p + self.floor / p.shape[-1]


@dataclass(frozen=True)
class GaussianCEM:
    """Cross-entropy method over plans of action vectors, a normal distribution per step and number.

    Args:
        population, elites, iterations: As in :class:`CategoricalCEM`.
        spread: First standard deviation, as a share of the action's range.
        std_floor: Least standard deviation, as a share of the range: a collapsed search finds nothing new.
    """

    population: int = 64
    elites: int = 8
    iterations: int = 4
    spread: float = 0.5
    std_floor: float = 0.05

    def __post_init__(self):
        _check_search(self.population, self.elites, self.iterations)
        if self.spread <= 0 or self.std_floor <= 0:
            raise ValueError(f"spread {self.spread} and std_floor {self.std_floor} must be positive")

    def propose(self, scene: Scene) -> Proposals:
        """The last population; its first candidate is the best plan of all so far."""
        low, high = _bounds(scene.world)
        shape = (len(scene.state), scene.steps, *low.shape)
        mean = np.broadcast_to((low + high) / 2, shape) if scene.warm is None else scene.warm
        std = np.broadcast_to(self.spread * (high - low), shape)
        best, proposals = mean[:, None], None
        for iteration in range(self.iterations):
            rng = numpy_rng(scene.seed, *scene.keys, "CEM", iteration)
            drawn = rng.standard_normal((shape[0], self.population, *shape[1:]))
            plans = np.clip(mean[:, None] + std[:, None] * drawn, low, high)
            plans[:, :1] = best
            proposals = value_plans(scene, plans)
            best = _best(proposals)
            mean, std = self.fit(elite_plans(proposals, self.elites), high - low)
        assert proposals is not None
        return proposals

    def behaviour(self, scene: Scene) -> Behaviour:
        """The best plan."""
        return best_plan_behaviour(self.propose(scene))

    def fit(self, elites: np.ndarray, width: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean and standard deviation of elite plans [B, E, H, A], never below the floor (also for one elite)."""
        return elites.mean(1), np.maximum(elites.std(1), self.std_floor * width)


@dataclass(frozen=True)
class MPC:
    """Model-predictive control inside imagination: plan ``lookahead`` steps, take the first action, plan again.

    Args:
        planner: What plans.
        lookahead: Steps of a plan.
    """

    planner: Proposer
    lookahead: int

    def propose(self, scene: Scene) -> Proposals:
        """One candidate: the branch in which every action was planned anew."""
        branches, value = try_out(scene, self.behaviour(scene), 1)
        return Proposals(value, first_actions(branches, scene, 1), branches)

    def behaviour(self, scene: Scene) -> Behaviour:
        """Replanning at every step."""
        return _Replan(self.planner, self.lookahead, scene)


@dataclass(frozen=True)
class _Replan:
    planner: Proposer
    lookahead: int
    scene: Scene
    draws: int = 0

    def actions(
        self, world: World, step: int, rows: np.ndarray, state: np.ndarray, uniform: np.ndarray
    ) -> np.ndarray:
        asked = self.scene.at(state, "replan", step)
        return self.planner.propose(
            Scene(world, state, self.lookahead, asked.aim, asked.seed, asked.keys)
        ).best_action


def elite_plans(proposals: Proposals, count: int) -> np.ndarray:
    """The ``count`` most valued plans of every start, [B, E, H, ...]; worthless ones are replaced by the best."""
    assert proposals.plan is not None
    order = np.argsort(-proposals.value, axis=1, kind="stable")[:, :count]
    rows = np.arange(len(order))[:, None]
    usable = np.isfinite(proposals.value[rows, order])
    return proposals.plan[rows, np.where(usable, order, order[:, :1])]


def shifted(plan: np.ndarray) -> np.ndarray:
    """A plan [B, H, ...] one step later, its last action repeated: the warm start of the next step."""
    return np.concatenate([plan[:, 1:], plan[:, -1:]], 1)


def _best(proposals: Proposals) -> np.ndarray:
    """The most valued plan of every start, [B, 1, H, ...]."""
    plan = proposals.best_plan
    assert plan is not None
    return plan[:, None]


def _bounds(world: World) -> tuple[np.ndarray, np.ndarray]:
    space = world.action_space
    if not isinstance(space, Box) or not space.is_bounded():
        raise TypeError(f"this planner needs bounded action vectors, but the world has {space}")
    return space.low.astype(np.float64), space.high.astype(np.float64)


def _check_search(population: int, elites: int, iterations: int) -> None:
    if not 1 <= elites <= population or iterations < 1:
        raise ValueError(f"{elites} elites of {population} plans in {iterations} iterations")
