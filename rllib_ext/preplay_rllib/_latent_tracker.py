"""The real stream as single observations, whatever number of them the policy sees at once."""

import numpy as np
from ray.rllib.env.single_agent_episode import SingleAgentEpisode

from preplay_rllib._replay import Columns
from preplay_rllib._vector_model import VectorTracker


class LatentTracker(VectorTracker):
    """Transitions between the newest of the ``frames`` observations that ``Recent`` puts side by side.

    Images are kept as uint8 [N, H, W, C], vectors as float32 [N, D].
    """

    def __init__(self, frames: int):
        super().__init__()
        self._frames = frames

    def _track_one(self, episode: SingleAgentEpisode) -> Columns:
        rows = super()._track_one(episode)
        return rows | {name: self._newest(rows[name]) for name in ("observation", "next")}

    def _newest(self, observations: np.ndarray) -> np.ndarray:
        size = observations.shape[-1] // self._frames
        newest = observations[..., -size:]
        return newest if newest.ndim == 2 else np.rint(newest * 255).astype(np.uint8)
