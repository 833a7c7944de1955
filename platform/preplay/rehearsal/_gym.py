"""Worlds as Gymnasium environments, so that any algorithm can practise inside a learned model.

A session ends by itself (terminated) when a uniform number falls below the predicted probability, and is cut
(truncated) at the world's or the environment's horizon. All luck of a session belongs to its number, never to the
actions taken in it: two policies that are given the same seed meet the same customers and the same chances.
"""

from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from preplay.errors import PreplayError
from preplay.rehearsal._world import ImaginedStep, World
from preplay.seeding import derive_seed


class WorldModelEnv(gymnasium.Env[np.ndarray, Any]):
    """One session at a time inside a world.

    Args:
        world: What is imagined.
        starts: States [n, ...] that sessions start from, each equally likely; logged initial states for instance.
        horizon: Steps after which a session is cut, if the world does not cut it earlier.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012 - the name and type are Gymnasium's

    def __init__(self, world: World, starts: np.ndarray, *, horizon: int | None = None):
        _check_starts(starts)
        self.world, self.starts, self.horizon = world, starts, horizon
        self.observation_space, self.action_space = world.observation_space, world.action_space
        self.state: np.ndarray | None = None
        self._steps, self._luck = 0, np.random.default_rng(0)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """A new session from a logged state; ``options={"start": n}`` chooses which."""
        super().reset(seed=seed)
        self._luck = np.random.default_rng(int(self.np_random.integers(2**62)))
        drawn = int(self._luck.integers(len(self.starts)))
        start = (options or {}).get("start", drawn)
        self.state, self._steps = self.starts[start : start + 1], 0
        return self.world.observe(self.state)[0], {"start": start}

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """One imagined step."""
        if self.state is None:
            raise gymnasium.error.ResetNeeded("call reset() before step()")
        noise, uniform = _draw([self._luck], self.world.noise_dim)
        result = self.world.step(self.state, np.asarray(action)[None], noise)
        self._steps += 1
        terminated = bool(uniform[0] < result.terminated[0])
        truncated = bool(result.truncated[0]) or self._steps == self.horizon
        self.state = None if terminated or truncated else result.state
        observation = self.world.observe(result.state)[0]
        return observation, float(result.reward[0]), terminated, truncated, _facts(result, 0)


class WorldModelVectorEnv(VectorEnv[np.ndarray, Any, np.ndarray]):
    """E sessions side by side, one batched step of the world for all of them.

    Session k of row e has the luck of (seed, e, k). After an end the row does what ``autoreset_mode`` says
    (Gymnasium's): ``NEXT_STEP`` ignores the next action and returns the new session's first observation with
    reward 0; ``SAME_STEP`` returns it at once and puts the last one into ``info["final_obs"]``; with ``DISABLED``
    the caller resets finished rows by ``reset(options={"reset_mask": mask})``.

    Args:
        world: What is imagined.
        starts: States [n, ...] that sessions start from.
        num_envs: E.
        horizon: Steps after which a session is cut, if the world does not cut it earlier.
        autoreset_mode: What follows an end.
        seed: Used until ``reset(seed=...)`` gives another.
    """

    def __init__(
        self,
        world: World,
        starts: np.ndarray,
        num_envs: int,
        *,
        horizon: int | None = None,
        autoreset_mode: AutoresetMode = AutoresetMode.NEXT_STEP,
        seed: int = 0,
    ):
        _check_starts(starts)
        self.world, self.starts, self.num_envs = world, starts, num_envs
        self.horizon, self.autoreset_mode = horizon, autoreset_mode
        self.metadata = {"render_modes": [], "autoreset_mode": autoreset_mode}
        self.single_observation_space = world.observation_space
        self.single_action_space = world.action_space
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._seed = seed
        self._forget()

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """New sessions in all rows, or in those of ``options["reset_mask"]`` (bool [E]).

        With a seed, sessions are counted from 0 again; without one, the next sessions begin.
        """
        super().reset(seed=seed)
        if seed is not None:
            self._seed = seed
            self._forget()
        mask = (options or {}).get("reset_mask", np.ones(self.num_envs, bool))
        self._begin(np.flatnonzero(mask))
        return self.world.observe(self.state), {"start": self._start.copy()}

    def step(self, actions: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """One imagined step of every row that runs."""
        if self._session.min() < 0:
            raise gymnasium.error.ResetNeeded("call reset() before step()")
        if self._over.any() and self.autoreset_mode is not AutoresetMode.NEXT_STEP:
            raise gymnasium.error.ResetNeeded(
                f"rows {np.flatnonzero(self._over)} have ended: reset them first"
            )
        begun, rows = np.flatnonzero(self._over), np.flatnonzero(~self._over)
        self._begin(begun)
        reward, terminated, truncated = np.zeros(self.num_envs), *np.zeros((2, self.num_envs), bool)
        info: dict[str, Any] = {}
        if len(rows):
            noise, uniform = _draw([self._luck[row] for row in rows.tolist()], self.world.noise_dim)
            result = self.world.step(self.state[rows], np.asarray(actions)[rows], noise)
            self._steps[rows] += 1
            self.state[rows], reward[rows] = result.state, result.reward
            terminated[rows] = uniform < result.terminated
            truncated[rows] = result.truncated | (self._steps[rows] == self.horizon)
            info |= _vector_facts(result, rows, self.num_envs)
        self._over = terminated | truncated
        observation = self.world.observe(self.state)
        if self.autoreset_mode is AutoresetMode.SAME_STEP and self._over.any():
            info |= self._finish(observation)
            observation = self.world.observe(self.state)
        return observation, reward, terminated, truncated, info

    @property
    def running(self) -> np.ndarray:
        """Rows whose session has not ended, bool [E]."""
        return ~self._over

    def _forget(self) -> None:
        self._session = np.full(self.num_envs, -1, np.int64)
        self._luck = [np.random.default_rng(0)] * self.num_envs
        self._steps, self._start = np.zeros((2, self.num_envs), np.int64)
        self._over = np.zeros(self.num_envs, bool)
        self.state = np.repeat(self.starts[:1], self.num_envs, 0)

    def _begin(self, rows: np.ndarray) -> None:
        """The next session of each of these rows."""
        self._session[rows] += 1
        for row in rows.tolist():
            self._luck[row] = np.random.default_rng(
                derive_seed(self._seed, "session", row, int(self._session[row]))
            )
            self._start[row] = self._luck[row].integers(len(self.starts))
        self.state[rows] = self.starts[self._start[rows]]
        self._steps[rows], self._over[rows] = 0, False

    def _finish(self, observation: np.ndarray) -> dict[str, Any]:
        """Begin new sessions where one ended; their last observations, as Gymnasium passes them on."""
        over = self._over.copy()
        final = np.full(self.num_envs, None, object)
        for row in np.flatnonzero(over).tolist():
            final[row] = observation[row]
        self._begin(np.flatnonzero(over))
        return {"final_obs": final, "_final_obs": over}


def _draw(luck: Sequence[np.random.Generator], noise_dim: int) -> tuple[np.ndarray, np.ndarray]:
    """The world's noise float64 [B, Z] and what decides terminations, float64 [B], from each session's stream."""
    noise = np.stack([rng.standard_normal(noise_dim) for rng in luck])
    return noise, np.array([rng.random() for rng in luck])


def _facts(result: ImaginedStep, row: int) -> dict[str, Any]:
    return {
        "terminated_prob": float(result.terminated[row]),
        "uncertainty": float(result.uncertainty[row]),
    }


def _vector_facts(result: ImaginedStep, rows: np.ndarray, size: int) -> dict[str, Any]:
    """The same for vectors: each key with a mask of the rows that have a value."""
    facts: dict[str, Any] = {}
    there = np.zeros(size, bool)
    there[rows] = True
    for name, values in (("terminated_prob", result.terminated), ("uncertainty", result.uncertainty)):
        facts[name] = np.zeros(size)
        facts[name][rows] = values
        facts[f"_{name}"] = there
    return facts


def _check_starts(starts: np.ndarray) -> None:
    if not len(starts):
        raise PreplayError("a world model's environment needs at least one state to start from.")
