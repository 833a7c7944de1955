"""Missions carried out: the director decides, the environment answers, and plans that fail are thrown away."""

from dataclasses import dataclass

import numpy as np

from preplay.rehearsal._director import Directive, Director
from preplay.rehearsal._gym import WorldModelEnv


@dataclass(frozen=True)
class MissionLog:
    """How a mission went.

    Args:
        directives: What was directed, in order.
        steps: Real steps taken.
        reward: Sum of the real rewards.
        completed: Whether the environment ended by itself with a reward.
    """

    directives: list[Directive]
    steps: int
    reward: float
    completed: bool


def run_mission(
    director: Director, mission: str, env: WorldModelEnv, *, seed: int, max_steps: int = 100
) -> MissionLog:
    """Direct a session of ``env`` (real or imagined) until it ends, nothing is left to do, or steps run out.

    A plan is left as soon as its sub-goal is reached.
    """
    env.reset(seed=seed)
    directives: list[Directive] = []
    steps, reward, over = 0, 0.0, False
    while not over and steps < max_steps and env.state is not None:
        directive = director.direct(mission, env.state)
        if directive is None:
            break
        directives.append(directive)
        for action in directive.plan[: max_steps - steps]:
            _, gained, terminated, truncated, _ = env.step(action)
            steps, reward, over = steps + 1, reward + gained, terminated or truncated
            if over or _reached(directive, env.state):
                break
    return MissionLog(directives, steps, reward, over and reward > 0)


def _reached(directive: Directive, state: np.ndarray | None) -> bool:
    return state is not None and bool(directive.sub_goal.reached(state)[0])
