"""What can be varied in the support desk, and the codes that its parts share."""

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

ISSUES = ("billing", "damaged", "outage", "locked", "setup", "slow")
PRODUCTS = ("router", "tablet", "camera", "headset", "TV box")
STAGES = ("vague", "details known", "diagnosed", "solved")
MAX_PATIENCE = 3
MAX_TRUST = 2
SOLVED = 3


class Intent(IntEnum):
    """What a reply of the agent does. ``OTHER`` is a reply that fits none of the eight intents."""

    ASK = 0
    DIAGNOSE = 1
    FIX = 2
    ESCALATE = 3
    REFUND = 4
    EMPATHISE = 5
    UPSELL = 6
    CLOSE = 7
    OTHER = 8


INTENTS = len(Intent) - 1
"""The intents that policies choose from (all but ``OTHER``)."""

REMEDY = np.array(
    [Intent.REFUND, Intent.REFUND, Intent.ESCALATE, Intent.ESCALATE, Intent.FIX, Intent.FIX], dtype=np.int64
)
"""The only intent that can solve each issue, in the order of ``ISSUES``."""


class Event(IntEnum):
    """What happened in a turn, which decides the customer's next message."""

    OPENING = 0
    STILL_VAGUE = 1
    TOLD_DETAILS = 2
    TOLD_ALREADY = 3
    CHECK_DONE = 4
    CHECK_FAILED = 5
    NEARLY_SOLVED = 6
    WRONG_REMEDY = 7
    SOLVED = 8
    SOOTHED = 9
    UNMOVED = 10
    OFFER_TOO_EARLY = 11
    SALE = 12
    NO_SALE = 13
    CLOSE_REFUSED = 14
    NOTHING_LEFT = 15
    CONFUSED = 16
    NEXT_TICKET = 17
    RESOLVED = 18
    CHURNED = 19


@dataclass(frozen=True)
class DeskConfig:
    """One variant of the support desk.

    Args:
        horizon: Turns after which a session is cut (truncated, not terminated).
        gamma: Discount of one turn.
        tickets: Issues a customer has, one after the other; each resolved one is worth ``1 / tickets``.
        delayed_reward: Whether the whole reward is paid on the session's last turn.
        cue_issue: Probability that a message tells which issue it is about.
        cue_stage: Probability that a message tells how far the case has come.
        cue_mood: Probability that a message tells the customer's patience and trust.
        progress_scale: Factor on the probability that a turn brings the case forward.
        annoyance_scale: Factor on the probability that a turn costs patience.
    """

    horizon: int = 12
    gamma: float = 0.97
    tickets: int = 1
    delayed_reward: bool = False
    cue_issue: float = 0.85
    cue_stage: float = 0.97
    cue_mood: float = 0.9
    progress_scale: float = 1.0
    annoyance_scale: float = 1.0
    turn_cost: float = 0.02
    resolved_reward: float = 1.0
    sale_reward: float = 0.5
    churn_cost: float = 1.0


DEFAULT = DeskConfig()
LONG = DeskConfig(
    horizon=40,
    tickets=3,
    delayed_reward=True,
    cue_issue=0.15,
    cue_stage=0.55,
    cue_mood=0.55,
    progress_scale=0.8,
    annoyance_scale=0.3,
)
