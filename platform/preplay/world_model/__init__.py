"""World models learned from logs: latent dynamics, reward and termination, decoding by retrieval."""

from preplay.world_model._along import AlongLogs
from preplay.world_model._config import FeatureConfig, OptimiserConfig, WorldModelConfig
from preplay.world_model._data import TurnArrays, turn_arrays
from preplay.world_model._ensemble import list_members, member_fidelity, train_ensemble
from preplay.world_model._fidelity import Fidelity, measure_energy_score, measure_fidelity
from preplay.world_model._model import (
    ConditionTable,
    LatentWorldModel,
    load_world_model,
    save_world_model,
    world_model_encoder,
)
from preplay.world_model._protocol import Dynamics, Transition, WorldModel, WorldState, draw_noise
from preplay.world_model._train import (
    FEATURES_CHECKPOINT,
    TrainedModel,
    stored_config,
    tool_call_reader,
    train_in_stages,
    train_world_model,
)

__all__ = [
    "FEATURES_CHECKPOINT",
    "AlongLogs",
    "ConditionTable",
    "Dynamics",
    "FeatureConfig",
    "Fidelity",
    "LatentWorldModel",
    "OptimiserConfig",
    "TrainedModel",
    "Transition",
    "TurnArrays",
    "WorldModel",
    "WorldModelConfig",
    "WorldState",
    "draw_noise",
    "list_members",
    "load_world_model",
    "measure_energy_score",
    "measure_fidelity",
    "member_fidelity",
    "save_world_model",
    "stored_config",
    "tool_call_reader",
    "train_ensemble",
    "train_in_stages",
    "train_world_model",
    "turn_arrays",
    "world_model_encoder",
]
