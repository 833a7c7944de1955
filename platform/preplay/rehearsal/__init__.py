"""Rehearsal before acting: when to imagine, what, from where, how far, and what it is used for."""

from preplay.rehearsal._behaviour import (
    FirstThen,
    ImaginedPolicy,
    PlannedActions,
    PolicyActions,
    Probabilities,
    RandomActions,
    draw_by,
)
from preplay.rehearsal._choices import ActionChoices
from preplay.rehearsal._dynamics_world import DynamicsWorld
from preplay.rehearsal._experience import Experience, Session, Transitions
from preplay.rehearsal._gym import WorldModelEnv, WorldModelVectorEnv
from preplay.rehearsal._horizon import Horizon, NearestReal
from preplay.rehearsal._imagine import Behaviour, Branches, Luck, imagine
from preplay.rehearsal._manager import Decision, Rehearsal, RehearsalManager
from preplay.rehearsal._planners import MPC, CategoricalCEM, GaussianCEM
from preplay.rehearsal._proposers import EachActionThen, PolicyBranches, RandomPlans, SuggestedPlans
from preplay.rehearsal._scene import Aim, Proposals, Proposer, Scene
from preplay.rehearsal._starts import Starts
from preplay.rehearsal._tabular import TabularWorld
from preplay.rehearsal._text_world import TextWorld
from preplay.rehearsal._triggers import AnyOf, AtKeyDecisions, EveryNSteps, Moment, Trigger, WhenUncertain
from preplay.rehearsal._world import ImaginedStep, World, action_count

__all__ = [
    "MPC",
    "ActionChoices",
    "Aim",
    "AnyOf",
    "AtKeyDecisions",
    "Behaviour",
    "Branches",
    "CategoricalCEM",
    "Decision",
    "DynamicsWorld",
    "EachActionThen",
    "EveryNSteps",
    "Experience",
    "FirstThen",
    "GaussianCEM",
    "Horizon",
    "ImaginedPolicy",
    "ImaginedStep",
    "Luck",
    "Moment",
    "NearestReal",
    "PlannedActions",
    "PolicyActions",
    "PolicyBranches",
    "Probabilities",
    "Proposals",
    "Proposer",
    "RandomActions",
    "RandomPlans",
    "Rehearsal",
    "RehearsalManager",
    "Scene",
    "Session",
    "Starts",
    "SuggestedPlans",
    "TabularWorld",
    "TextWorld",
    "Transitions",
    "Trigger",
    "WhenUncertain",
    "World",
    "WorldModelEnv",
    "WorldModelVectorEnv",
    "action_count",
    "draw_by",
    "imagine",
]
