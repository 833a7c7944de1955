"""Episodic count bonus: the first visit of an observation in an episode earns β / √N, N episodes having seen it."""

import copy
import hashlib
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from ray.rllib.env.single_agent_episode import SingleAgentEpisode
from ray.rllib.env.utils.infinite_lookback_buffer import InfiniteLookbackBuffer


class FirstVisitBonus:
    """Adds the bonus to copies of the real episodes that go to the learner; returns that are reported stay pure."""

    def __init__(self, beta: float):
        self.beta = beta
        self._counts: Counter[int] = Counter()
        self._open: dict[str, set[int]] = {}

    def shaped(self, episodes: Sequence[SingleAgentEpisode]) -> list[SingleAgentEpisode]:
        """The same episodes with the bonus in their rewards."""
        return [self._shape(episode) for episode in episodes] if self.beta else list(episodes)

    def _shape(self, episode: SingleAgentEpisode) -> SingleAgentEpisode:
        keys = [_key(o) for o in np.asarray(episode.get_observations())]
        seen = self._open.pop(episode.id_, None)
        if seen is None:
            seen = set()
            self._visit(keys[0], seen)
        bonus = np.array([self._visit(key, seen) for key in keys[1:]], np.float32)
        if not episode.is_done:
            self._open[episode.id_] = seen
        shaped = copy.copy(episode)  # the env runner still reports returns from the episode itself
        past: Any = episode.rewards.data
        lookback = np.asarray(past[: episode.rewards.lookback], np.float32)
        rewards = np.asarray(episode.get_rewards(), np.float32) + bonus
        data = np.concatenate([lookback, rewards])
        shaped.rewards = InfiniteLookbackBuffer(
            data if episode.is_numpy else data.tolist(), lookback=episode.rewards.lookback
        )
        return shaped

    def _visit(self, key: int, seen: set[int]) -> float:
        if key in seen:
            return 0.0
        seen.add(key)
        self._counts[key] += 1
        return self.beta / self._counts[key] ** 0.5

    def get_state(self) -> dict[str, Any]:
        """Only the counts: on resume the environments begin new episodes."""
        return {"counts": dict(self._counts)}

    def set_state(self, state: dict[str, Any]) -> None:
        self._counts, self._open = Counter(state["counts"]), {}


def _key(observation: np.ndarray) -> int:
    """Python's own hash differs from process to process, and a resumed run must find its counts again."""
    return int.from_bytes(hashlib.blake2b(observation.tobytes(), digest_size=8).digest(), "big")
