"""Search through distinct states: for worlds with discrete actions whose rewards are too rare for random plans."""

from dataclasses import dataclass

import numpy as np

from preplay.rehearsal._imagine import Behaviour
from preplay.rehearsal._proposers import best_plan_behaviour, value_plans
from preplay.rehearsal._scene import Proposals, Scene
from preplay.rehearsal._world import action_count
from preplay.seeding import numpy_rng


@dataclass(frozen=True)
class BeamSearch:
    """Breadth-first search that keeps ``width`` distinct states per depth: the most valued ones, then random ones.

    Steps are predicted without noise (the middle of what the world could do), so the plan is exact where the world
    is deterministic; its value is then imagined like any other plan's.

    Args:
        width: States kept per depth; exact when no depth has more.
        keep: Plans that are returned and valued, the best found.
    """

    width: int = 256
    keep: int = 4

    def __post_init__(self):
        if not 1 <= self.keep <= self.width:
            raise ValueError(f"{self.keep} plans out of {self.width} states")

    def propose(self, scene: Scene) -> Proposals:
        """The best plans found from every state."""
        plans = np.stack([self._search(scene, row) for row in range(len(scene.state))])
        return value_plans(scene, plans)

    def behaviour(self, scene: Scene) -> Behaviour:
        """The best plan."""
        return best_plan_behaviour(self.propose(scene))

    def _search(self, scene: Scene, row: int) -> np.ndarray:
        """int64 [keep, H] from one state."""
        count, rng = action_count(scene.world), numpy_rng(scene.seed, *scene.keys, "beam", row)
        state, plans, value = scene.state[row : row + 1], np.zeros((1, 0), np.int64), np.zeros(1)
        done = [(np.zeros(0, np.int64), -np.inf)]
        seen: set[bytes] = {state.tobytes()}
        for depth in range(scene.steps):
            parent, action = np.repeat(np.arange(len(state)), count), np.tile(np.arange(count), len(state))
            result = scene.world.step(state[parent], action, np.zeros((len(action), scene.world.noise_dim)))
            earned = result.reward - scene.aim.caution * result.uncertainty
            total = value[parent] + scene.aim.gamma**depth * np.nan_to_num(earned, nan=-np.inf)
            tried = np.concatenate([plans[parent], action[:, None]], 1)
            over = (result.terminated > 0.5) | result.truncated
            done += [(tried[i], total[i]) for i in np.flatnonzero(over)]
            on = self._distinct(result.state, total, ~over & np.isfinite(total), seen, rng)
            if not len(on):
                break
            state, plans, value = result.state[on], tried[on], total[on]
        done += list(zip(plans, value, strict=True))
        return self._pad(sorted(done, key=lambda plan: -plan[1])[: self.keep], scene.steps)

    def _distinct(
        self,
        state: np.ndarray,
        value: np.ndarray,
        usable: np.ndarray,
        seen: set[bytes],
        rng: np.random.Generator,
    ) -> np.ndarray:
        """Rows of new states, the most valued first, ties in random order: at most ``width``."""
        chosen: list[int] = []
        for i in np.lexsort((rng.random(len(value)), -value)).tolist():
            key = state[i].tobytes()
            if usable[i] and key not in seen:
                seen.add(key)
                chosen.append(i)
            if len(chosen) == self.width:
                break
        return np.array(chosen, np.int64)

    def _pad(self, plans: list[tuple[np.ndarray, float]], steps: int) -> np.ndarray:
        """Plans that end early go on with their last action (or 0); missing ones repeat the first."""
        rows = np.zeros((self.keep, steps), np.int64)
        for row in range(self.keep):
            plan = plans[row if row < len(plans) else 0][0]
            rows[row, : len(plan)] = plan
            rows[row, len(plan) :] = plan[-1] if len(plan) else 0
        return rows
