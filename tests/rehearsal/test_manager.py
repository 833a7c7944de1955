"""The manager's parts: experience, starts, triggers, horizons, and what they make together."""

import numpy as np
import pytest

from preplay.errors import PreplayError
from preplay.rehearsal import (
    AnyOf,
    AtKeyDecisions,
    CategoricalCEM,
    EveryNSteps,
    Experience,
    Horizon,
    NearestReal,
    PolicyBranches,
    RandomPlans,
    Rehearsal,
    RehearsalManager,
    Session,
    Starts,
    TabularWorld,
    WhenUncertain,
)
from preplay.seeding import numpy_rng

from .conftest import RIGHT, corridor


def session(states, *, terminated=False, success=False) -> Session:
    steps = len(states) - 1
    return Session(np.array(states), np.full(steps, RIGHT), np.arange(steps) * 1.0, terminated, success)


def go_right(observation, uniform):
    return np.full(len(observation), RIGHT)


def test_experience_keeps_ends_and_cuts_apart():
    experience = Experience()
    experience.add(session([0, 1, 2], terminated=True, success=True))
    experience.add(session([5, 6]))
    steps = experience.transitions
    assert steps.state.tolist() == [0, 1, 5]
    assert steps.next_state.tolist() == [
        1,
        2,
        6,
    ]  # the last state of a cut session is its own, not the next start
    assert steps.terminated.tolist() == [False, True, False]
    assert steps.success.tolist() == [True, True, False]


def test_experience_forgets_whole_sessions_oldest_first():
    experience = Experience(capacity=5)
    for first in (0, 10, 20):
        experience.add(session([first, first + 1, first + 2]))
    assert len(experience) == 4
    assert experience.transitions.state.tolist() == [10, 11, 20, 21]
    experience.add(session(list(range(30, 40))))
    assert experience.transitions.state.tolist() == list(
        range(30, 39)
    )  # the newest is kept even when too long


def test_a_session_must_have_its_last_state():
    with pytest.raises(ValueError, match="2 states"):
        Session(np.zeros(2), np.zeros(2), np.zeros(2), False)


def filled() -> Experience:
    experience = Experience()
    experience.add(session([0, 1, 0, 1, 0]))
    experience.add(session([2, 3, 4], terminated=True, success=True))
    return experience


def test_starts_in_their_shares():
    rng = numpy_rng(0, "test")
    drawn = Starts(replayed=0, success=0.5, current=0.5).draw(
        1000, filled(), corridor(), rng, current=np.array([9])
    )
    assert set(drawn.tolist()) == {2, 3, 9}
    assert (drawn == 9).mean() == pytest.approx(0.5, abs=0.06)
    replayed = Starts().draw(1000, filled(), corridor(), rng)
    assert set(replayed.tolist()) == {0, 1, 2, 3}


def test_missing_kinds_give_their_share_to_replayed_states():
    experience = Experience()
    experience.add(session([0, 1, 2]))
    drawn = Starts(replayed=0, success=0.7, current=0.3).draw(
        50, experience, corridor(), numpy_rng(0, "test")
    )
    assert set(drawn.tolist()) == {0, 1}
    with pytest.raises(PreplayError, match="nothing to rehearse from"):
        Starts().draw(5, Experience(), corridor(), numpy_rng(0, "test"))
    alone = Starts().draw(3, Experience(), corridor(), numpy_rng(0, "test"), current=np.array([7]))
    assert alone.tolist() == [7, 7, 7]


def test_uncertain_starts_are_where_the_world_knows_least():
    world = corridor()
    known = np.zeros((5, 2))
    known[3, RIGHT] = 1.0
    unsure = TabularWorld(world.transition, world.reward, world.terminated, known)
    drawn = Starts(replayed=0, uncertain=1).draw(10, filled(), unsure, numpy_rng(1, "test"))
    assert drawn[:4].tolist() == [3] * 4  # all that were among the 40 rows looked at
    assert set(drawn[4:].tolist()) <= {0, 1, 2}


def manager(proposer, world=None, **how) -> RehearsalManager:
    extra = {"reinject": how.pop("reinject")} if "reinject" in how else {}
    return RehearsalManager(world or corridor(), Rehearsal(proposer, **how), seed=3, **extra)


def test_every_n_steps_counts_from_the_last_round():
    it = manager(PolicyBranches(go_right), trigger=EveryNSteps(10))
    state = np.array([0, 1])
    assert it.watch(state, 6).tolist() == [False, False]
    assert it.watch(state, 6).tolist() == [True, True]
    it.train(filled())
    assert it.watch(state, 6).tolist() == [False, False]
    assert it.watch(state, 4).tolist() == [True, True]


def test_triggers_on_uncertainty_and_on_key_decisions():
    world = corridor()
    known = np.zeros((5, 2))
    known[1] = [0.2, 0.8]
    unsure = TabularWorld(world.transition, world.reward, world.terminated, known)
    states = np.array([0, 1, 2])
    assert manager(RandomPlans(), unsure, trigger=WhenUncertain(0.4)).watch(states, 1).tolist() == [0, 1, 0]
    assert manager(RandomPlans(), unsure, trigger=WhenUncertain(0.6)).watch(states, 1).tolist() == [0, 0, 0]
    key = AtKeyDecisions(lambda seen: seen[:, 2] > 0)
    assert manager(RandomPlans(), unsure, trigger=key).watch(states, 1).tolist() == [0, 0, 1]
    both = AnyOf((key, WhenUncertain(0.4)))
    assert manager(RandomPlans(), unsure, trigger=both).watch(states, 1).tolist() == [0, 1, 1]


def test_horizon_schedule_is_what_is_imagined():
    horizon = Horizon(((0, 1), (100, 5)))
    assert [horizon.at(n) for n in (0, 50, 100, 10_000)] == [1, 3, 5, 5]
    it = manager(PolicyBranches(go_right), corridor(50), horizon=horizon, branches=4)
    lengths = []
    for _ in range(3):
        lengths.append(int(it.train(filled()).step.max()) + 1)
        it.watch(np.array([0]), 50)
    assert lengths == [1, 3, 5]


@pytest.mark.parametrize("schedule", [(), ((5, 1), (0, 2)), ((0, 0.5),)])
def test_impossible_schedules(schedule):
    with pytest.raises(ValueError, match="schedule"):
        Horizon(schedule)


def test_imagined_training_stops_at_predicted_ends():
    it = manager(PolicyBranches(go_right), starts=Starts(replayed=0, success=1), branches=8)
    branches = it.train(filled())
    lengths = np.bincount(branches.branch)
    begun = branches.state[branches.step == 0]
    assert lengths.tolist() == (4 - begun).tolist()  # to the end at place 4, not to the horizon of 15
    assert branches.terminated.sum() == 8


def test_imagined_training_brings_states_back():
    states = np.array([0, 3])
    bring_back = NearestReal.among(states, lambda s: s[:, None].astype(float))
    assert bring_back(np.array([1, 2, 9])).tolist() == [0, 3, 3]
    it = manager(
        PolicyBranches(go_right), corridor(9), horizon=Horizon(((0, 4),), reinject_every=1), branches=1,
        reinject=bring_back,
    )  # fmt: skip
    experience = Experience()
    experience.add(session([0, 1]))
    branches = it.train(experience)
    assert branches.state.tolist() == [0, 0, 0, 0]
    with pytest.raises(ValueError, match="re-injection"):
        manager(RandomPlans(), horizon=Horizon(reinject_every=2))


def test_deciding_now_follows_the_best_imagined_plan_to_the_goal():
    world = corridor(6, cost=0.01)
    it = manager(CategoricalCEM(population=32, elites=4, iterations=3), world, horizon=Horizon(((0, 6),)))
    state, warm, path = np.array([1, 2]), None, []
    for _ in range(3):
        decision = it.act(state, warm=warm)
        state = world.step(state, decision.action, np.zeros((2, 1))).state
        warm = decision.warm
        path.append(state.tolist())
    assert path == [[2, 3], [3, 4], [4, 5]]
    assert decision.value == pytest.approx([-0.01 + 0.97, 1.0])


def test_a_plan_can_be_trained_on_too():
    it = manager(CategoricalCEM(population=64, elites=8), corridor(), horizon=Horizon(((0, 4),)), branches=6)
    branches = it.train(filled())
    assert branches.count == 6
    assert branches.terminated.sum() >= 5
    assert manager(RandomPlans(), corridor(), branches=5).train(filled()).count == 5


def test_same_seed_same_rounds_also_after_a_resume():
    def rounds(it, count):
        return [it.train(filled()).state.tolist() for _ in range(count)]

    whole = rounds(manager(RandomPlans(), corridor(slip=0.3), branches=6), 4)
    first = manager(RandomPlans(), corridor(slip=0.3), branches=6)
    begun = rounds(first, 2)
    second = manager(RandomPlans(), corridor(slip=0.3), branches=6)
    second.load_state_dict(first.state_dict())
    assert begun + rounds(second, 2) == whole
    assert whole[0] != whole[1]
