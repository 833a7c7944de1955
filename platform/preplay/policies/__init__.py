"""Policies: the agents whose value is asked for."""

from preplay.policies._protocol import ActionBatch, AgentState, Policy, StochasticPolicy

__all__ = ["ActionBatch", "AgentState", "Policy", "StochasticPolicy"]
