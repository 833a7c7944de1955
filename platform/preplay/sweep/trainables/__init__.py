"""What preplay can sweep: world models, critics, fitted Q evaluation, and rehearsal where it is installed."""

from preplay.sweep.trainables._critic import CqlTrainable, IqlTrainable
from preplay.sweep.trainables._fqe import FqeTrainable, on_policy_check
from preplay.sweep.trainables._open_loop import OpenLoop, open_loop
from preplay.sweep.trainables._rehearsal import RehearsalTrainable
from preplay.sweep.trainables._world_model import WorldModelTrainable

__all__ = [
    "CqlTrainable",
    "FqeTrainable",
    "IqlTrainable",
    "OpenLoop",
    "RehearsalTrainable",
    "WorldModelTrainable",
    "on_policy_check",
    "open_loop",
]
