"""Imagined sessions that begin like logged ones and take logged actions."""

import numpy as np
import torch
from torch import Tensor

from preplay.actions import SessionReader
from preplay.world_model._data import TurnArrays
from preplay.world_model._model import LatentWorldModel
from preplay.world_model._protocol import Transition


class AlongLogs:
    """B sessions of a model, of which only the first observation and the actions are logged.

    Args:
        bank: Text embeddings float32 [N, D] that ``turns`` points into, on the model's device.
        first: int64 [B] rows of first turns.
        reader: That the model was trained with.
    """

    def __init__(
        self,
        model: LatentWorldModel,
        bank: Tensor,
        turns: TurnArrays,
        first: np.ndarray,
        reader: SessionReader | None = None,
    ):
        task = torch.as_tensor(turns.task[first])
        embedded = bank[task.clamp_min(0)] * (task >= 0)[:, None].to(bank)
        self._model, self._bank, self._turns, self._reader = model, bank, turns, reader
        self.state = model.start(bank[torch.as_tensor(turns.observation[first])], task=embedded)
        self._past = reader.begin(first, same_policy=True) if reader else None
        self._seen = reader.observations(model.texts) if reader else None

    def select(self, rows: np.ndarray) -> None:
        """Go on with the given sessions alone."""
        self.state = self.state.select(torch.as_tensor(rows))
        self._past = self._past.select(rows) if self._past else None

    def step(self, rows: np.ndarray, noise: Tensor) -> Transition:
        """One turn with the actions of these logged rows int64 [B]."""
        action = self._bank[torch.as_tensor(self._turns.action[rows])]
        if self._reader is None or self._past is None or self._seen is None:
            found = self._model.step(self.state, action, noise)
        else:
            acted = self._reader.logged_action[rows]
            found = self._model.step(self.state, action, noise, self._reader.features(self._past, acted))
            self._past = self._past.then(acted, self._seen[found.text_id.cpu().numpy()])
        self.state = found.state
        return found
