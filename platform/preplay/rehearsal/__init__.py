"""Rehearsal before acting: when to imagine, what, from where, how far, and what it is used for."""

from preplay.rehearsal._adviser import Adviser, PolicyAdviser
from preplay.rehearsal._beam import BeamSearch
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
from preplay.rehearsal._director import Directive, Director, SkillAdapter
from preplay.rehearsal._dream import GoalTransitions, dream, relabel
from preplay.rehearsal._dynamics_world import DynamicsWorld
from preplay.rehearsal._experience import Experience, Session, Transitions
from preplay.rehearsal._goal import GoalWorld, SubGoal
from preplay.rehearsal._gym import WorldModelEnv, WorldModelVectorEnv
from preplay.rehearsal._horizon import Horizon, NearestReal
from preplay.rehearsal._imagine import Behaviour, Branches, Luck, imagine
from preplay.rehearsal._key_room import KeyRoom
from preplay.rehearsal._language import LanguageAdviser, packaged_model
from preplay.rehearsal._manager import Decision, Rehearsal, RehearsalManager
from preplay.rehearsal._mission import MissionLog, run_mission
from preplay.rehearsal._planners import MPC, CategoricalCEM, GaussianCEM
from preplay.rehearsal._prior import LoggedPolicy, fit_logged_policy
from preplay.rehearsal._proposers import EachActionThen, PolicyBranches, RandomPlans, SuggestedPlans
from preplay.rehearsal._scene import Aim, Proposals, Proposer, Scene
from preplay.rehearsal._starts import Starts
from preplay.rehearsal._tabular import TabularWorld
from preplay.rehearsal._text_actor import DecideNow, TextActor
from preplay.rehearsal._text_world import TextWorld
from preplay.rehearsal._triggers import AnyOf, AtKeyDecisions, EveryNSteps, Moment, Trigger, WhenUncertain
from preplay.rehearsal._two_agents import CrossingRules, TwoAgentWorld, habit, predicted_other
from preplay.rehearsal._two_level import SubGoalModel, TwoLevel
from preplay.rehearsal._world import ImaginedStep, World, WorldWrapper, action_count

__all__ = [
    "MPC",
    "ActionChoices",
    "Adviser",
    "Aim",
    "AnyOf",
    "AtKeyDecisions",
    "BeamSearch",
    "Behaviour",
    "Branches",
    "CategoricalCEM",
    "CrossingRules",
    "DecideNow",
    "Decision",
    "Directive",
    "Director",
    "DynamicsWorld",
    "EachActionThen",
    "EveryNSteps",
    "Experience",
    "FirstThen",
    "GaussianCEM",
    "GoalTransitions",
    "GoalWorld",
    "Horizon",
    "ImaginedPolicy",
    "ImaginedStep",
    "KeyRoom",
    "LanguageAdviser",
    "LoggedPolicy",
    "Luck",
    "MissionLog",
    "Moment",
    "NearestReal",
    "PlannedActions",
    "PolicyActions",
    "PolicyAdviser",
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
    "SkillAdapter",
    "Starts",
    "SubGoal",
    "SubGoalModel",
    "SuggestedPlans",
    "TabularWorld",
    "TextActor",
    "TextWorld",
    "Transitions",
    "Trigger",
    "TwoAgentWorld",
    "TwoLevel",
    "WhenUncertain",
    "World",
    "WorldModelEnv",
    "WorldModelVectorEnv",
    "WorldWrapper",
    "action_count",
    "draw_by",
    "dream",
    "fit_logged_policy",
    "habit",
    "imagine",
    "packaged_model",
    "predicted_other",
    "relabel",
    "run_mission",
]
