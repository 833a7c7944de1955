"""Policies: the agents whose value is asked for."""

from preplay.policies._chat import ChatConfig, ChatPolicy
from preplay.policies._clone import ClonedPolicy, TextEncoder, fit_clone
from preplay.policies._clone_files import load_clone, save_clone
from preplay.policies._load import HasPolicies, load_policy
from preplay.policies._protocol import ActionBatch, AgentState, Policy, StochasticPolicy
from preplay.policies._python import AnswerCache, FunctionPolicy

__all__ = [
    "ActionBatch",
    "AgentState",
    "AnswerCache",
    "ChatConfig",
    "ChatPolicy",
    "ClonedPolicy",
    "FunctionPolicy",
    "HasPolicies",
    "Policy",
    "StochasticPolicy",
    "TextEncoder",
    "fit_clone",
    "load_clone",
    "load_policy",
    "save_clone",
]
