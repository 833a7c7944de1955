"""A prioritised replay buffer whose samples are real and imagined in the ratio that rehearsal asks for."""

from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np
from ray.rllib.env.single_agent_episode import SingleAgentEpisode
from ray.rllib.env.utils.infinite_lookback_buffer import InfiniteLookbackBuffer
from ray.rllib.utils.replay_buffers.prioritized_episode_buffer import PrioritizedEpisodeReplayBuffer

from preplay_rllib._transitions import IMAGINED


class MixedReplayBuffer(PrioritizedEpisodeReplayBuffer):
    """Real episodes as RLlib keeps them; imagined one-step episodes in a small queue, the oldest flushed first."""

    def __init__(self, *args: Any, imagined_capacity: int, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.imagined: deque[SingleAgentEpisode] = deque(maxlen=imagined_capacity)
        self.real_ratio = 1.0
        self._fresh: list[SingleAgentEpisode] = []

    def add(self, episodes: Any, weight: float | None = None) -> None:
        """Keep the episodes, and remember them for the world model."""
        self._fresh.extend(episodes if isinstance(episodes, list) else [episodes])
        super().add(episodes, weight)

    def take_fresh(self) -> list[SingleAgentEpisode]:
        """Real episodes that came in since the last call."""
        fresh, self._fresh = self._fresh, []
        return fresh

    @property
    def fresh_rows(self) -> int:
        return sum(map(len, self._fresh))

    def add_imagined(self, episodes: Sequence[SingleAgentEpisode]) -> None:
        self.imagined.extend(episodes)

    def sample(self, num_items: int | None = None, **kwargs: Any) -> Any:
        """``num_items`` one-step episodes, ``1 - real_ratio`` of them imagined once there are enough of them."""
        assert num_items is not None
        wanted = round((1 - self.real_ratio) * num_items)
        imagined = wanted if len(self.imagined) >= wanted else 0
        real: Any = super().sample(num_items=num_items - imagined, **kwargs)
        for episode in real:
            episode.extra_model_outputs[IMAGINED] = InfiniteLookbackBuffer([0.0], lookback=0)
        chosen = self.rng.integers(len(self.imagined), size=imagined) if imagined else []
        return real + [self.imagined[int(i)] for i in chosen]

    def update_priorities(self, priorities: Any, module_id: Any = None) -> None:
        """Only real rows have a priority; the errors of imagined ones come last."""
        super().update_priorities(np.asarray(priorities)[: len(self._last_sampled_indices)], module_id)

    def get_state(self) -> dict[str, Any]:
        return super().get_state() | {"imagined": [e.get_state() for e in self.imagined]}

    def set_state(self, state: dict[str, Any]) -> None:
        super().set_state(state)
        self.imagined.clear()
        self.imagined.extend(SingleAgentEpisode.from_state(e) for e in state["imagined"])
