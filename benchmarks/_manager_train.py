"""Rehearsal used for training: real steps until a tabular learner has solved two rooms, part by part.

The learner, its exploration and the number of its updates are the same in every arm that updates at all beyond the
real steps; only where these updates come from differs.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from preplay.rehearsal import (
    AnyOf,
    Branches,
    EveryNSteps,
    Experience,
    Horizon,
    ImaginedPolicy,
    KeyRoom,
    PolicyBranches,
    RandomPlans,
    Rehearsal,
    RehearsalManager,
    Session,
    Starts,
    TabularWorld,
    Trigger,
    WhenUncertain,
)
from preplay.seeding import numpy_rng

ROOM = KeyRoom(2, 3, slip=0.1)
GAMMA, RATE, EPSILON = 0.97, 0.5, 0.1
EPISODE, BUDGET, CHECK = 80, 20_000, 250
EVERY, BRANCHES = 64, 32
SOLVED = 0.9


@dataclass(frozen=True)
class Arm:
    """How the extra updates are made: by rehearsal, from replayed real steps, or not at all."""

    starts: Starts = Starts()  # noqa: RUF009
    horizon: Horizon = Horizon(((0, 8),))  # noqa: RUF009
    trigger: Trigger = EveryNSteps(EVERY)  # noqa: RUF009
    random: bool = False
    source: str = "model"


ARMS = {
    "real steps only": Arm(source="none"),
    "replayed real steps (update-matched)": Arm(source="replay"),
    "placebo model (never trained)": Arm(source="placebo"),
    "rehearsal": Arm(),
    "starts: on the way to successes": Arm(Starts(replayed=0.5, success=0.5)),
    "starts: uncertain": Arm(Starts(replayed=0.5, uncertain=0.5)),
    "starts: current": Arm(Starts(replayed=0.5, current=0.5)),
    "random actions": Arm(random=True),
    "horizon 1": Arm(horizon=Horizon(((0, 1),))),
    "horizon 1 to 15": Arm(horizon=Horizon(((0, 1), (4000, 15)))),
    "when uncertain": Arm(trigger=AnyOf((WhenUncertain(0.4), EveryNSteps(8 * EVERY)))),
}


def train_results(seeds: range) -> dict[str, float]:
    """Median real steps to solve the rooms, and imagined steps per real one, of every arm."""
    results = {}
    for name, arm in ARMS.items():
        runs = [_Run(arm, seed).solve() for seed in seeds]
        results[f"train: {name}, real steps"] = float(np.median([steps for steps, _ in runs]))
        results[f"train: {name}, slowest seed"] = float(max(steps for steps, _ in runs))
        results[f"train: {name}, updates per real step"] = float(np.mean([u / s for s, u in runs]))
        print(name, [steps for steps, _ in runs], flush=True)
    return results


class _Run:
    """One learner in the real rooms."""

    def __init__(self, arm: Arm, seed: int):
        self.arm, self.seed = arm, seed
        self.q = np.zeros((ROOM.states, 5))
        self.rng = numpy_rng(seed, "learner")
        self.experience, self.updates = Experience(50_000), 0
        policy: ImaginedPolicy = lambda seen, uniform: self._act(seen.argmax(1), uniform)  # noqa: E731
        how = Rehearsal(
            RandomPlans() if arm.random else PolicyBranches(policy),
            trigger=arm.trigger,
            starts=arm.starts,
            horizon=arm.horizon,
            branches=BRANCHES,
        )
        self.manager = RehearsalManager(self._model(), how, seed=seed)

    def solve(self) -> tuple[int, int]:
        """Real steps until it succeeds from nine starts of ten, at most ``BUDGET``; and extra updates made."""
        steps, checked = 0, 0
        while steps < BUDGET:
            steps += self._episode()
            if steps - checked >= CHECK:
                checked = steps
                if success_rate(ROOM, lambda state: self.q[state].argmax(1), self.seed) >= SOLVED:
                    return steps, self.updates
        return BUDGET, self.updates

    def _episode(self) -> int:
        state, states, actions, rewards, over = int(self.rng.choice(ROOM.starts)), [], [], [], False
        states.append(state)
        while not over and len(actions) < EPISODE:
            action = int(self._act(np.array([state]), self.rng.random(1))[0])
            result = ROOM.world.step(np.array([state]), np.array([action]), self.rng.standard_normal((1, 1)))
            after, over = int(result.state[0]), bool(result.terminated[0])
            self._learn(np.array([state]), np.array([action]), result.reward, result.state, result.terminated)
            states.append(after)
            actions.append(action)
            rewards.append(float(result.reward[0]))
            state = after
            if self.arm.source != "none" and len(self.experience):
                self._rehearse(np.array([state]))
        self.experience.add(Session(np.array(states), np.array(actions), np.array(rewards), over, over))
        return len(actions)

    def _rehearse(self, state: np.ndarray) -> None:
        if not self.manager.watch(state, 1).any():
            return
        if self.arm.source == "model":
            self.manager.world = self._model()
        if self.arm.source == "replay":
            self.manager.last_round = self.manager.real_steps
            self._replay()
        else:
            self._imagined(self.manager.train(self.experience, state))

    def _replay(self) -> None:
        """As many updates from real steps as a round of rehearsal makes at most."""
        steps, count = self.experience.transitions, BRANCHES * self.arm.horizon.at(0)
        for rows in self.rng.integers(len(steps), size=(self.arm.horizon.at(0), BRANCHES)):
            self._learn(
                *(getattr(steps, n)[rows] for n in ("state", "action", "reward", "next_state", "terminated"))
            )
        self.updates += count

    def _imagined(self, branches: Branches) -> None:
        for step in range(
            int(branches.step.max()), -1, -1
        ):  # backwards, as what follows is known better then
            rows = branches.step == step
            self._learn(
                *(
                    getattr(branches, n)[rows]
                    for n in ("state", "action", "reward", "next_state", "terminated")
                )
            )
        self.updates += len(branches)

    def _learn(
        self, state: np.ndarray, action: np.ndarray, reward: np.ndarray, after: np.ndarray, ended: np.ndarray
    ) -> None:
        target = reward + GAMMA * (1 - ended) * self.q[after].max(1)
        self.q[state, action] += RATE * (target - self.q[state, action])

    def _act(self, state: np.ndarray, uniform: np.ndarray) -> np.ndarray:
        """Epsilon-greedy; equal values are told apart by the draw."""
        values = self.q[state]
        best = values >= values.max(1, keepdims=True) - 1e-12
        p = (1 - EPSILON) * best / best.sum(1, keepdims=True) + EPSILON / 5
        return (uniform[:, None] >= p.cumsum(1)[:, :-1]).sum(1)

    def _model(self) -> TabularWorld:
        if self.arm.source == "placebo" or not len(self.experience):
            none = np.zeros(0, np.int64)
            return TabularWorld.counted(ROOM.states, 5, none, none, none * 1.0, none, none > 0)
        t = self.experience.transitions
        return TabularWorld.counted(ROOM.states, 5, t.state, t.action, t.reward, t.next_state, t.terminated)


def success_rate(room: KeyRoom, act: Callable[[np.ndarray], np.ndarray], seed: int, steps: int = 40) -> float:
    """Share of starts from which these actions reach the goal."""
    state, over = np.repeat(room.starts, 4), np.zeros(4 * len(room.starts), bool)
    rng = numpy_rng(seed, "check")
    for _ in range(steps):
        result = room.world.step(state, act(state), rng.standard_normal((len(state), 1)))
        over |= result.terminated > 0
        state = np.where(over, state, result.state)
    return float(over.mean())
