"""Rehearsal for RLlib: algorithms that mix real with imagined experience. Change one import and train."""

from preplay_rllib._minigrid import OPTIMAL_RETURN, MiniGrid
from preplay_rllib._ppo import RehearsalPPO, RehearsalPPOConfig
from preplay_rllib._settings import RehearsalSettings

__all__ = ["OPTIMAL_RETURN", "MiniGrid", "RehearsalPPO", "RehearsalPPOConfig", "RehearsalSettings"]
