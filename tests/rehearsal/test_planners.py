"""Proposers and planners against exact values of processes that are known."""

from dataclasses import dataclass

import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete

from preplay.errors import PreplayError
from preplay.rehearsal import (
    MPC,
    Aim,
    CategoricalCEM,
    EachActionThen,
    GaussianCEM,
    ImaginedStep,
    PlannedActions,
    PolicyBranches,
    RandomPlans,
    Scene,
    SuggestedPlans,
    TabularWorld,
    draw_by,
    imagine,
)
from preplay.rehearsal._planners import elite_plans, shifted
from preplay.rehearsal._scene import Proposals

from .conftest import LEFT, RIGHT, corridor

GAMMA = 0.9


def go_right(observation, uniform):
    return np.full(len(observation), RIGHT)


def scene(world, states, steps, **more) -> Scene:
    aim = Aim(gamma=GAMMA, **{k: more.pop(k) for k in ("particles", "caution", "value") if k in more})
    return Scene(world, np.asarray(states), steps, aim, **more)


def combination_lock(length: int = 6) -> TabularWorld:
    """Three actions; only one of them leads on from each place (place mod 3), any other back to 0. The end pays 1."""
    transition = np.zeros((length, 3, length))
    transition[:, :, 0] = 1
    for place in range(length - 1):
        transition[place, place % 3] = np.eye(length)[place + 1]
    arrived = np.zeros((length, 3, length))
    arrived[..., -1] = 1
    return TabularWorld.exact(transition, arrived, arrived)


def test_categorical_cem_finds_the_only_plan_and_its_exact_value():
    world = combination_lock()
    found = CategoricalCEM(population=200, elites=20, iterations=8).propose(scene(world, [0, 2], 5))
    assert found.best_plan[0].tolist() == [0, 1, 2, 0, 1]
    assert found.best_plan[1, :3].tolist() == [2, 0, 1]
    exact = world.optimal_values(GAMMA, 5).max(1)
    assert found.best_value == pytest.approx(exact[[0, 2]])
    assert found.best_value == pytest.approx([GAMMA**4, GAMMA**2])


@pytest.mark.parametrize("slip", [0.0, 0.2])
def test_every_action_then_a_policy_equals_its_exact_values(slip):
    world = corridor(slip=slip, cost=0.05)
    rows = [1, 3]
    found = EachActionThen(go_right).propose(scene(world, rows, 30, particles=1 if slip == 0 else 4000))
    # exact: policy "right" evaluated by the same recursion, then one free action
    q = (world.transition * world.reward).sum(-1)
    on = world.transition * (1 - world.terminated)
    for _ in range(29):
        q = (world.transition * world.reward).sum(-1) + GAMMA * on @ q[:, RIGHT]
    assert found.value == pytest.approx(q[rows], abs=1e-9 if slip == 0 else 0.02)
    assert found.best_action.tolist() == [RIGHT, RIGHT]


def test_policy_branches_by_hand():
    found = PolicyBranches(go_right, candidates=2).propose(scene(corridor(cost=0.1), [2], 9))
    assert found.value == pytest.approx(np.full((1, 2), -0.1 + GAMMA))
    assert found.first.tolist() == [[RIGHT, RIGHT]]
    assert found.plan is None


def test_particles_of_a_policy_candidate_share_its_first_action():
    """From place 3 of 5 the value of a candidate is decided by its first action: 1 to the right, less to the left."""
    uniform = draw_by(lambda seen: np.full((len(seen), 2), 0.5))
    found = PolicyBranches(uniform, candidates=20).propose(scene(corridor(), [3], 2, particles=30))
    right = found.first[0] == RIGHT
    assert 4 <= right.sum() <= 16
    assert (found.value[0, right] == 1).all()
    assert (found.value[0, ~right] < 0.95).all()


def test_random_shooting_finds_a_short_plan():
    found = RandomPlans(64).propose(scene(corridor(), [2], 3))
    assert found.best_plan[0, :2].tolist() == [RIGHT, RIGHT]
    assert found.best_value == pytest.approx([GAMMA])


def test_replanning_beats_a_fixed_plan_where_the_world_is_random():
    """A step that fails 15 % of the time puts a fixed plan out of step for good; replanning takes it up again."""
    world = combination_lock(4)
    slips = 0.85 * world.transition + 0.15 * np.eye(4)[:, None]
    world = TabularWorld.exact(slips, world.reward, world.terminated)
    asked = scene(world, [0], 12, particles=200)
    planner = EachActionThen(draw_by(lambda o: np.full((len(o), 3), 1 / 3)))
    mpc = MPC(CategoricalCEM(population=40, elites=5, iterations=3), lookahead=5).propose(
        scene(world, [0], 12, particles=20)
    )
    fixed = CategoricalCEM(population=60, elites=8, iterations=4).propose(asked)
    exact = world.optimal_values(GAMMA, 12).max(1)[0]
    assert mpc.best_value[0] > fixed.best_value[0] + 0.05
    assert mpc.best_value[0] == pytest.approx(exact, abs=0.1)
    assert planner.propose(asked).best_value[0] < mpc.best_value[0]


def test_the_plan_returned_imagines_to_the_value_returned():
    world = corridor(slip=0.3)
    asked = scene(world, [1, 2], 6, particles=50)
    found = CategoricalCEM(population=30, elites=4, iterations=3).propose(asked)
    again = SuggestedPlans(lambda s: found.best_plan[:, None]).propose(asked)
    assert again.value[:, 0] == pytest.approx(found.best_value)


@dataclass(frozen=True)
class Slope:
    """One number on a line; the action moves it by up to 1, and being near ``goal`` pays."""

    goal: float = 3.0
    noise_dim: int = 0
    low: float = -1.0
    action_space = Box(-1, 1, (1,), np.float64)
    observation_space = Box(-10, 10, (1,), np.float64)

    def observe(self, state):
        return state

    def step(self, state, action, noise):
        after = state + action
        rows = np.zeros(len(state))
        reward = -np.abs(after[:, 0] - self.goal)
        return ImaginedStep(after, reward, rows, rows.astype(bool), rows)


def test_gaussian_cem_reaches_the_exact_optimum():
    found = GaussianCEM(population=200, elites=20, iterations=10).propose(scene(Slope(), [[0.0], [2.0]], 4))
    # from 0: 2, 1, 0, 0 away; from 2: 0 away at once
    assert found.best_value == pytest.approx([-(2 + GAMMA), 0.0], abs=0.15)
    assert found.best_plan[0, :3, 0] == pytest.approx([1, 1, 1], abs=0.1)
    assert found.best_action[1] == pytest.approx([1.0], abs=0.1)


def test_gaussian_search_never_collapses():
    planner = GaussianCEM(std_floor=0.05)
    one_elite = np.zeros((1, 1, 3, 2))
    mean, std = planner.fit(one_elite, np.array([2.0, 4.0]))
    assert mean.shape == (1, 3, 2)
    assert std[0, 0].tolist() == [0.1, 0.2]
    found = GaussianCEM(population=10, elites=1, iterations=20).propose(scene(Slope(), [[0.0]], 2))
    assert np.isfinite(found.value).all()
    assert np.ptp(found.plan[0, :, 0, 0]) > 0.05


def test_an_action_without_elites_can_come_back():
    planner = CategoricalCEM(smoothing=0.0, floor=0.1)
    p = planner._imitate(np.full((1, 1, 4), 0.25), np.zeros((1, 8, 1), int))
    assert p[0, 0].tolist() == pytest.approx([0.925, 0.025, 0.025, 0.025])


@dataclass(frozen=True)
class Broken:
    """Action 0 gives no number, action 1 gives -5."""

    noise_dim: int = 0
    action_space = Discrete(2)
    observation_space = Box(0, 1, (1,), np.float64)

    def observe(self, state):
        return state[:, None]

    def step(self, state, action, noise):
        rows = np.zeros(len(state))
        return ImaginedStep(state, np.where(action == 0, np.nan, -5.0), rows, rows.astype(bool), rows)


@pytest.mark.parametrize(
    "proposer", [CategoricalCEM(population=20, elites=4), RandomPlans(20), EachActionThen(go_right)]
)
def test_what_is_no_number_never_wins(proposer):
    found = proposer.propose(scene(Broken(), [0, 0], 1))
    assert found.best_action.tolist() == [1, 1]
    assert found.best_value.tolist() == [-5, -5]


def test_worthless_plans_are_no_elites():
    value = np.array([[np.nan, -5.0, -np.inf]])
    plans = np.array([[[0], [1], [2]]])
    found = Proposals(np.where(np.isnan(value), -np.inf, value), plans[:, :, 0], None, plans)
    assert elite_plans(found, 3).tolist() == [[[1], [1], [1]]]


def test_a_warm_start_is_one_candidate_and_dropped_when_it_is_bad():
    world, good = combination_lock(), np.array([[0, 1, 2, 0, 1]])
    quick = CategoricalCEM(population=4, elites=2, iterations=1)
    found = quick.propose(scene(world, [0], 5, warm=good))
    assert found.best_plan.tolist() == good.tolist()
    bad = quick.propose(scene(world, [3], 2, warm=np.array([[2, 2]])))
    assert bad.best_value >= 0
    assert shifted(good).tolist() == [[1, 2, 0, 1, 1]]


def test_caution_keeps_away_from_what_the_model_does_not_know():
    world = corridor(4, cost=0.0)
    unknown = np.zeros((4, 2))
    unknown[2, RIGHT] = 1.0
    unsure = TabularWorld(world.transition, world.reward, world.terminated, unknown)
    bold = EachActionThen(go_right).propose(scene(unsure, [2], 1))
    careful = EachActionThen(go_right).propose(scene(unsure, [2], 1, caution=2.0))
    assert bold.best_action.tolist() == [RIGHT]
    assert careful.best_action.tolist() == [LEFT]


def test_a_planner_does_not_want_to_end_what_only_costs_more():
    """Each step costs 1 everywhere and ending pays 0: the end is best, though nothing follows it (its value is 0)."""
    transition = np.zeros((2, 2, 2))
    transition[0, 0, 0] = transition[0, 1, 1] = transition[1, :, 1] = 1
    reward, ended = np.zeros((2, 2, 2)), np.zeros((2, 2, 2))
    reward[0, 0, 0] = -0.1  # staying costs
    reward[0, 1, 1], ended[0, 1, 1] = -5.0, 1.0  # leaving costs much more at once
    world = TabularWorld.exact(transition, reward, ended)
    found = CategoricalCEM(population=40, elites=5).propose(scene(world, [0], 6))
    assert found.best_plan[0, :5].tolist() == [0] * 5
    assert found.best_value[0] == pytest.approx(-0.1 * (1 - GAMMA**6) / (1 - GAMMA))


def test_candidates_share_the_worlds_luck():
    asked = scene(corridor(slip=0.4), [1, 2], 3, particles=4)
    group = asked.luck(candidates=3).group.reshape(2, 3, 4)
    assert (group == group[:, :1]).all()
    assert group[0, 0].tolist() == [0, 1, 2, 3]
    assert group[1, 0].tolist() == [4, 5, 6, 7]


def test_suggestions_are_judged_by_imagination():
    world = combination_lock()
    seen = []

    def suggest(asked):
        seen.append(asked.state.tolist())
        return np.array([[[2, 2, 2, 2, 2], [0, 1, 2, 0, 1]]])

    proposer = SuggestedPlans(suggest)
    found = proposer.propose(scene(world, [0], 5))
    assert found.best.tolist() == [1]
    assert seen == [[0]]
    branch = imagine(
        world,
        np.array([0]),
        proposer.behaviour(scene(world, [0], 5)),
        steps=5,
        luck=scene(world, [0], 5).luck(),
    )
    assert branch.terminated.tolist() == [0, 0, 0, 0, 1]
    with pytest.raises(PreplayError, match="suggested plans have shape"):
        SuggestedPlans(lambda s: np.zeros((1, 5))).propose(scene(world, [0], 5))


def test_planned_actions_follow_the_branch_not_the_position():
    world = corridor(3)
    plans = np.array([[RIGHT, RIGHT], [RIGHT, LEFT]])
    branches = imagine(
        world, np.array([1, 0]), PlannedActions(plans), steps=2, luck=scene(world, [1, 0], 2).luck()
    )
    assert branches.next_state.tolist() == [2, 1, 0]  # branch 0 ended at once; branch 1 went right and left


def test_a_planner_needs_the_right_kind_of_actions():
    with pytest.raises(TypeError, match="action vectors"):
        GaussianCEM().propose(scene(corridor(), [0], 2))
    with pytest.raises(TypeError, match="discrete"):
        CategoricalCEM().propose(scene(Slope(), [[0.0]], 2))
    with pytest.raises(ValueError, match="elites"):
        CategoricalCEM(population=4, elites=5)
