"""What preplay can sweep: world models, critics, fitted Q evaluation, and rehearsal where it is installed."""

from preplay.sweep.trainables._critic import CqlTrainable, IqlTrainable
from preplay.sweep.trainables._fqe import FqeTrainable, feature_model, fqe_data, on_policy_check
from preplay.sweep.trainables._open_loop import OpenLoop, open_loop
from preplay.sweep.trainables._rehearsal import RehearsalTrainable
from preplay.sweep.trainables._world_model import WorldLogs, WorldModelTrainable, judge

__all__ = [
    "CqlTrainable",
    "FqeTrainable",
    "IqlTrainable",
    "OpenLoop",
    "RehearsalTrainable",
    "WorldLogs",
    "WorldModelTrainable",
    "feature_model",
    "fqe_data",
    "judge",
    "on_policy_check",
    "open_loop",
]
