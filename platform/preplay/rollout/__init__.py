"""Imagined sessions: policies against world models, batched, on Ray."""

from preplay.rollout._config import RolloutConfig
from preplay.rollout._initial import InitialStates
from preplay.rollout._loop import Block, rollout_block
from preplay.rollout._result import Drift, RolloutResult
from preplay.rollout._run import FinishedBlock, run_rollouts
from preplay.rollout._schema import IMAGINED_SCHEMA
from preplay.rollout._tool_calls import ToolCalls

__all__ = [
    "IMAGINED_SCHEMA",
    "Block",
    "Drift",
    "FinishedBlock",
    "InitialStates",
    "RolloutConfig",
    "RolloutResult",
    "ToolCalls",
    "rollout_block",
    "run_rollouts",
]
