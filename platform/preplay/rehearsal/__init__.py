"""Rehearsal before acting: when to imagine, what, from where, how far, and what it is used for."""

from preplay.rehearsal._choices import ActionChoices
from preplay.rehearsal._dynamics_world import DynamicsWorld
from preplay.rehearsal._gym import WorldModelEnv, WorldModelVectorEnv
from preplay.rehearsal._imagine import Behaviour, Branches, Luck, imagine
from preplay.rehearsal._tabular import TabularWorld
from preplay.rehearsal._text_world import TextWorld
from preplay.rehearsal._world import ImaginedStep, World, action_count

__all__ = [
    "ActionChoices",
    "Behaviour",
    "Branches",
    "DynamicsWorld",
    "ImaginedStep",
    "Luck",
    "TabularWorld",
    "TextWorld",
    "World",
    "WorldModelEnv",
    "WorldModelVectorEnv",
    "action_count",
    "imagine",
]
