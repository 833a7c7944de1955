"""The arm that replays: branches are what really happened after their first state, under whatever policy was then.

Everything else is RehearsalPPO's: which states branches start from, how many there are, how they are learned from.
The difference between the two is what imagination adds to looking at the same experience again.

Legend: B branches of H steps.
"""

import functools
from typing import Any

import numpy as np
import torch
from ray.rllib.core.learner.learner import Learner
from ray.rllib.core.learner.learner_group import LearnerGroup

from preplay_rllib import RehearsalPPO, RehearsalPPOConfig
from preplay_rllib._engine import Engine, call_first
from preplay_rllib._imagine import Batch, Branching, act, batch_of, learner_modules
from preplay_rllib._model import Imagined
from preplay_rllib._replay import Columns as Rows
from preplay_rllib._replay import Replay


class ReplayedPPOConfig(RehearsalPPOConfig):
    """RehearsalPPO on replayed branches; for MiniGrid."""

    def __init__(self) -> None:
        super().__init__(algo_class=ReplayedPPO)


class ReplayedPPO(RehearsalPPO):
    """RehearsalPPO whose engine replays."""

    @classmethod
    def get_default_config(cls) -> ReplayedPPOConfig:
        return ReplayedPPOConfig()

    def _begin_engine(self, gamma: float, lambda_: float) -> None:
        super()._begin_engine(gamma, lambda_)
        made = self.engine
        self.engine = _ReplayedEngine(made.settings, made.tracker, made.seed, gamma, lambda_)


class _ReplayedEngine(Engine):
    def starts(self, branches: int, *stream: str | int) -> Rows:
        """H + 1 rows per branch, columns [H + 1, B, ...], and ``known``: whether the episode went so far."""
        newest, rng = self.settings.newest_starts, self.rng(*stream)
        first = self.replay._mixed(branches, self.success_share, "on_success", rng, newest)
        rows, known = follow(self.replay, first, self.horizon(0) + 1)
        return self.replay._take(rows) | {"known": known}

    def branch(self, learners: LearnerGroup, starts: Rows, real_steps: int, *stream: str | int) -> Batch:
        branching = self.branching(real_steps, *stream)
        return call_first(learners, functools.partial(_replay_branches, rows=starts, branching=branching))


def follow(replay: Replay, first: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """int64 [count, B], the rows of an episode from each first one on; bool [count, B], whether there are so many."""
    episode = replay._column("episode")
    age = (replay._next - 1 - np.arange(len(episode))) % replay.capacity
    order = np.lexsort((-age, episode))  # episode by episode, oldest first
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    ahead = place[first] + np.arange(count)[:, None]
    rows = order[np.minimum(ahead, len(order) - 1)]
    return rows, (ahead < len(order)) & (episode[rows] == episode[first])


@torch.no_grad()
def _replay_branches(learner: Learner, rows: Rows, branching: Branching) -> Batch:
    """The rows as PPO trains on imagined ones: under the newest policy's probabilities and values."""
    modules: Any = learner_modules(learner, branching.seed)
    policy, model, generator = modules
    known, ended = torch.as_tensor(rows["known"]), torch.as_tensor(rows["terminated"])
    seen = [
        model.observe(model.states({k: v[t] for k, v in rows.items()}, learner.device))
        for t in range(len(known))
    ]
    steps = []
    for t in range(len(known) - 1):
        success = torch.as_tensor(rows["success"][t])
        happened = Imagined(
            state=None,
            observation=seen[t + 1],
            reward=model.reward(success, torch.as_tensor(rows["step"][t]) + 1),
            terminated=ended[t],
            success=success,
            truncated=torch.zeros_like(success),
            worth=success.float(),
            disagreement=torch.zeros(len(success)),
        )
        taken = act(policy, seen[t], generator, torch.as_tensor(rows["action"][t]))
        steps.append((taken, happened, known[t] & (ended[t] | known[t + 1])))
    return batch_of(policy, steps, branching)
