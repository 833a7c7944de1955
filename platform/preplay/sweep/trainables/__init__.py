"""What preplay can sweep: world models, critics, fitted Q evaluation, and rehearsal where it is installed."""

from preplay.sweep.trainables._critic import CqlTrainable, IqlTrainable
from preplay.sweep.trainables._fqe import FqeTrainable, feature_model, fqe_data, on_policy_check
from preplay.sweep.trainables._open_loop import rollout_error
from preplay.sweep.trainables._rehearsal import RehearsalTrainable
from preplay.sweep.trainables._world_model import WorldLogs, WorldModelTrainable, judge

__all__ = [
    "CqlTrainable",
    "FqeTrainable",
    "IqlTrainable",
    "RehearsalTrainable",
    "WorldLogs",
    "WorldModelTrainable",
    "feature_model",
    "fqe_data",
    "judge",
    "on_policy_check",
    "rollout_error",
]
