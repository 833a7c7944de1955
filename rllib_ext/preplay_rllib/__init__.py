"""Rehearsal for RLlib: algorithms that mix real with imagined experience. Change one import and train."""

from preplay_rllib._curve import Point
from preplay_rllib._grid_tracker import GridTracker
from preplay_rllib._minigrid import OPTIMAL_RETURN, MiniGrid, flatten
from preplay_rllib._off_policy import RehearsalDQN, RehearsalDQNConfig, RehearsalSAC, RehearsalSACConfig
from preplay_rllib._ppo import RehearsalPPO, RehearsalPPOConfig
from preplay_rllib._recent import Recent
from preplay_rllib._run_config import RehearsalRun, RehearsalRunConfig
from preplay_rllib._settings import RehearsalSettings
from preplay_rllib._train import algorithm_config, train_rehearsal

__all__ = [
    "OPTIMAL_RETURN",
    "GridTracker",
    "MiniGrid",
    "Point",
    "Recent",
    "RehearsalDQN",
    "RehearsalDQNConfig",
    "RehearsalPPO",
    "RehearsalPPOConfig",
    "RehearsalRun",
    "RehearsalRunConfig",
    "RehearsalSAC",
    "RehearsalSACConfig",
    "RehearsalSettings",
    "algorithm_config",
    "flatten",
    "train_rehearsal",
]
