"""Dreaming: how well a task is done at its first try after a time without one.

A goal-conditioned table is filled from at most 3,000 real steps of wandering. With dreams it is also filled from
imagination in a model of these steps; without, from the same real steps relabelled, with as many updates.
"""

import numpy as np

from benchmarks._manager_decide import ROOM, play
from preplay.rehearsal import (
    Branches,
    GoalTransitions,
    Luck,
    RandomActions,
    TabularWorld,
    dream,
    imagine,
    relabel,
)
from preplay.seeding import numpy_rng

SESSIONS, LENGTH, ROUNDS, BATCH, GOALS, RATE, GAMMA = 100, 30, 150, 200, 4, 0.5, 0.95


def dream_results(seeds: range) -> dict[str, float]:
    """Executed success of the first sessions with a task that was unknown before."""
    results = {}
    for name in ("real steps relabelled", "dreams", "dreams of an untrained model"):
        runs = [_first_try(name, seed) for seed in seeds]
        for part, values in zip(("return", "success"), zip(*runs, strict=True), strict=True):
            results[f"dreaming: {name}, {part}"] = float(np.mean(values))
        results[f"dreaming: {name}, standard error"] = float(
            np.std([r for r, _ in runs], ddof=1) / np.sqrt(len(runs))
        )
    return results


def _first_try(name: str, seed: int) -> tuple[float, float]:
    rng = numpy_rng(seed, "wandering")
    start = rng.integers(ROOM.states, size=SESSIONS)
    wandering = imagine(
        ROOM.world, start, RandomActions(), steps=LENGTH, luck=Luck(seed, np.arange(SESSIONS), ("real",))
    )
    table = np.zeros((ROOM.states, ROOM.states, 5))  # [goal, state, action]
    world = _model(wandering if name == "dreams" else None)
    for round_ in range(ROUNDS):
        if name == "real steps relabelled":
            told = relabel(wandering, 3, numpy_rng(seed, "relabel", round_))
        else:
            told = dream(
                world, rng.choice(wandering.state, BATCH), steps=8, seed=seed, round_=round_, goals=GOALS
            )
        _learn(table, told)
    goals = np.flatnonzero(
        (ROOM.facts(np.arange(ROOM.states))[0] == ROOM.goal[0]) & (np.arange(ROOM.states) % 4 == 3)
    )
    goal = goals[ROOM.facts(goals)[1] == ROOM.goal[1]][0]
    tie = numpy_rng(seed, "ties").random((ROOM.states, 5)) * 1e-9
    returned, success, _ = play(
        lambda rows, state, step: (table[goal] + tie)[state].argmax(1), np.repeat(ROOM.starts, 4), seed
    )
    return returned, success


def _learn(table: np.ndarray, told: GoalTransitions) -> None:
    """One sweep over the transitions; goals are states, and every goal learns from every transition's end."""
    for rows in np.array_split(np.arange(len(told)), max(1, len(told) // 256)):
        goal, state, action, after = (
            getattr(told, n)[rows] for n in ("goal", "state", "action", "next_state")
        )
        target = np.where(told.reached[rows], 1.0, GAMMA * table[goal, after].max(1))
        table[goal, state, action] += RATE * (target - table[goal, state, action])


def _model(seen: Branches | None) -> TabularWorld:
    none = np.zeros(0, np.int64)
    if seen is None:
        return TabularWorld.counted(ROOM.states, 5, none, none, none * 1.0, none, none > 0)
    return TabularWorld.counted(
        ROOM.states, 5, seen.state, seen.action, 0 * seen.reward, seen.next_state, seen.terminated > 0
    )
