"""A support desk with known dynamics: issue, stage, patience and trust hidden behind natural language.

Rewards: resolved +1, sale +0.5, churn -1, and -0.02 a turn. A session terminates when it is resolved or the
customer leaves, and is truncated at the horizon.
"""

from preplay.environments.support_desk._agent_texts import REPLIES, classify_reply, intent_of
from preplay.environments.support_desk._config import DEFAULT, LONG, DeskConfig, Event, Intent
from preplay.environments.support_desk._cues import Cues, read_cues
from preplay.environments.support_desk._environment import TASK, SupportDesk
from preplay.environments.support_desk._gym import SupportDeskEnv
from preplay.environments.support_desk._policies import DeskPolicy

__all__ = [
    "DEFAULT",
    "LONG",
    "REPLIES",
    "TASK",
    "Cues",
    "DeskConfig",
    "DeskPolicy",
    "Event",
    "Intent",
    "SupportDesk",
    "SupportDeskEnv",
    "classify_reply",
    "intent_of",
    "read_cues",
]
