"""The real stream of MiniGrid as beliefs, actions and outcomes."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from ray.rllib.env.single_agent_episode import SingleAgentEpisode

from preplay_rllib import _belief
from preplay_rllib._belief import Belief
from preplay_rllib._minigrid import unflatten
from preplay_rllib._replay import Columns


class GridTracker:
    """Belief, action and outcome of every real step; beliefs of unfinished episodes wait for the next chunk."""

    def __init__(self) -> None:
        self._open: dict[str, tuple[int, Belief]] = {}
        self._episodes = 0

    def track(self, episodes: Sequence[SingleAgentEpisode]) -> Columns:
        parts = [self._track_one(episode) for episode in episodes if len(episode)]
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}

    def _track_one(self, episode: SingleAgentEpisode) -> Columns:
        views = torch.as_tensor(unflatten(np.asarray(episode.get_observations())))
        actions = torch.as_tensor(np.array(episode.get_actions()))  # a copy: remote ones are read-only
        number, belief = self._open.pop(episode.id_, (self._episodes, None))
        if belief is None:
            self._episodes += 1
            belief = _belief.first_belief(views[:1])
        beliefs, moved = [], []
        for t in range(len(episode)):
            beliefs.append(belief)
            moved.append(_belief.walks(belief, actions[t : t + 1]))
            belief = _belief.see(_belief.move(belief, actions[t : t + 1], moved[-1]), views[t + 1 : t + 2])
        if not episode.is_done:
            self._open[episode.id_] = (number, belief)
        return self._columns(episode, number, beliefs, torch.cat(moved), actions, views[1:])

    @staticmethod
    def _columns(episode, number, beliefs, moved, actions, views) -> Columns:
        last = np.arange(len(episode)) == len(episode) - 1
        reward = np.asarray(episode.get_rewards(), np.float32)
        success = last & episode.is_terminated & (reward > 0)
        return {
            "grid": torch.cat([b.grid for b in beliefs]).numpy(),
            "under": torch.cat([b.under for b in beliefs]).numpy(),
            "step": torch.cat([b.step for b in beliefs]).numpy(),
            "action": actions.numpy().astype(np.int64),
            "moved": moved.numpy(),
            "view": views.numpy(),
            "terminated": last & episode.is_terminated,
            "success": success,
            "worth": success.astype(np.float32),
            "episode": np.full(len(episode), number, np.int64),
        }

    def gap_unit(self, rows: Columns, horizon: int) -> float:
        """Worth is success: a gap of 1 is an agent that always succeeds in imagination and never in the world."""
        return 1.0

    def get_state(self) -> dict[str, Any]:
        """Only the count: on resume the environments begin new episodes."""
        return {"episodes": self._episodes}

    def set_state(self, state: dict[str, Any]) -> None:
        self._episodes, self._open = state["episodes"], {}
