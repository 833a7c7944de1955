"""Environments with known dynamics: logs with exact propensities, and true values to compare with."""

from preplay.environments._protocol import Environment, Sessions
from preplay.environments._registry import get_environment
from preplay.environments._truth import TruthResult, truth

__all__ = ["Environment", "Sessions", "TruthResult", "get_environment", "truth"]
