"""Imagined turns as arrays: return from each turn on, support, and rows for the Q regression.

N imagined turns, n initial states.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import torch

from preplay.embedding import CachedEncoder
from preplay.pipeline._logged import action_features, state_features
from preplay.pipeline._model_value import ImaginedValues, imagined_return_to_go
from preplay.rollout import RolloutResult
from preplay.world_model import ConditionTable, LatentWorldModel, TurnArrays

CHUNK = 20_000


@dataclass(frozen=True)
class Imagined:
    """Imagined turns of one policy, sorted by member, session and step.

    Args:
        result: What the rollouts amount to.
        table: Rows of ``IMAGINED_SCHEMA``.
        session: int64 [N] number of the imagined session.
        value: float64 [N] return from the turn on, given that the session got there.
        first: int64 rows of the sessions' first turns.
    """

    result: RolloutResult
    table: pa.Table
    session: np.ndarray
    value: np.ndarray
    first: np.ndarray

    @classmethod
    def of(cls, result: RolloutResult, gamma: float) -> "Imagined":
        """Sort the turns and sum up their returns."""
        keys = ["member", "initial", "rollout", "step"]
        table = result.turns.sort_by([(key, "ascending") for key in keys])
        step = table["step"].to_numpy()
        session = np.cumsum(step == 0) - 1
        reward, ended = table["reward"].to_numpy(), table["terminated_prob"].to_numpy()
        value = imagined_return_to_go(session, reward, ended, gamma)
        return cls(result, table, session, value, np.flatnonzero(step == 0))

    def column(self, name: str) -> np.ndarray:
        """A numeric column."""
        return self.table[name].to_numpy()

    def share_beyond(self, radius: float) -> float:
        """Share of imagined turns whose support distance exceeds ``radius``."""
        weight = self.column("survival")
        return float(np.average(self.column("support_distance") > radius, weights=weight))


@torch.no_grad()
def imagined_values(
    imagined: Imagined, model: LatentWorldModel, encoder: CachedEncoder, task_of_initial: np.ndarray
) -> ImaginedValues:
    """Imagined turns as regression rows in the features of one member.

    Args:
        task_of_initial: int64 [n] encoder id of each initial state's task, -1 where there is none.
    """
    table = imagined.table
    observation = _ids(table["observation"], encoder)
    turns = TurnArrays(
        observation=observation,
        action=_ids(table["action"], encoder),
        next_observation=observation,
        task=task_of_initial[imagined.column("initial")],
        reward=imagined.column("reward"),
        return_to_go=imagined.value,
        terminated=np.zeros(len(observation), bool),
        turn=imagined.column("step").astype(np.int64),
        session=imagined.session,
        held_out=np.zeros(len(observation), bool),
    )
    bank = torch.as_tensor(encoder.embeddings(np.arange(len(encoder.texts))), device=model.device)
    conditions = ConditionTable.build(model, bank, turns)
    states, actions = [], []
    for rows in torch.arange(len(turns)).split(CHUNK):
        condition = conditions(rows)
        states.append(state_features(model, condition))
        actions.append(action_features(model, condition))
    return ImaginedValues(
        np.concatenate(states), np.concatenate(actions), imagined.value, imagined.column("survival")
    )


def _ids(column: pa.ChunkedArray, encoder: CachedEncoder) -> np.ndarray:
    encoded = column.unify_dictionaries().combine_chunks()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.chunk(0)
    return encoder.ids(encoded.dictionary.to_pylist())[encoded.indices.to_numpy()]
