"""How policies read: cues parsed from texts by keywords. Nothing here sees the hidden state.

The same reading works for a text that the environment wrote and for one that a world model retrieved.
"""

import re
from functools import lru_cache
from typing import NamedTuple

from preplay.environments.support_desk._agent_texts import intent_of
from preplay.environments.support_desk._config import ISSUES, REMEDY, Intent
from preplay.policies import AgentState

UNKNOWN = -1

_ISSUE_WORDS = {
    "billing": r"bill|payment|charged|bookings",
    "damaged": r"bad state|look right|cracked|broken|broke on|seal",
    "outage": r"no service|comes through|signal|lamps|line test|node",
    "locked": r"account|signing in|blocked|locked out|sec-lock",
    "setup": r"going\.|installing|pairing|wizard|firmware|ghz",
    "slow": r"hanging|slow|every page|freezes|98 percent|cache",
}
_STAGE_WORDS = (
    r"looks odd|is strange|bad state|not look right|no service|comes through|cannot get|signing in|installing"
    r"|keeps hanging|terribly slow|problem with my|need help",
    r"charged twice|two times|cracked|casing|signal|lamps|blocked|locked out|pairing|wizard|every page"
    r"|freezes|my description|as i described",
    r"bookings|photos|line test|status page|sec-lock|firmware|ghz|98 percent|overflowing|test result"
    r"|check came out",
    r"works now|is gone\.|sorted out|well again|that did it|hooray|wrap up|no more steps|nothing left",
)
_MOOD_WORDS = (
    r"outrageous|furious|had enough|i am gone",
    r"frustrating|fed up|too long|expected better",
    r"fair enough|no complaints",
    r"very kind|appreciated|so glad|no rush",
)
_TRUST_WORDS = (r"doubt|even reading", r"(?!)", r"rely on|know your job")
_NEW_TICKET_WORDS = r"one more thing|next problem|another question"
_SOLD_WORDS = r"i take it|add that to my plan|book it"
_FAILED_WORDS = r"wrong track|not what i need|does nothing|could not do|where to look|got stuck"

_ISSUE_RES = [re.compile(_ISSUE_WORDS[issue]) for issue in ISSUES]
_STAGE_RES, _MOOD_RES, _TRUST_RES = (
    [re.compile(words) for words in group] for group in (_STAGE_WORDS, _MOOD_WORDS, _TRUST_WORDS)
)
_NEW_TICKET_RE, _SOLD_RE, _FAILED_RE = (
    re.compile(words) for words in (_NEW_TICKET_WORDS, _SOLD_WORDS, _FAILED_WORDS)
)


class Message(NamedTuple):
    """Cues of one customer message; ``UNKNOWN`` where it says nothing about them."""

    issue: int
    stage: int
    mood: int
    trust: int
    sold: bool
    failed: bool
    new_ticket: bool


_REMEDY: tuple[int, ...] = tuple(REMEDY.tolist())  # plain numbers: read once per state and turn


class Cues(NamedTuple):
    """What a policy knows in a state.

    Args:
        remedy: Intent that solves the issue, or ``UNKNOWN``.
        stage: How far the case is, 0 to 3, or ``UNKNOWN``.
        mood: Patience that speaks from the newest message, 0 to 3, or ``UNKNOWN``.
        trust: Trust that speaks from it, 0 or 2, or ``UNKNOWN``.
        sold: Whether an offer was taken within the window.
        failed: Whether the last step failed.
        last: Intent of the agent's last reply, or ``UNKNOWN``.
        before: Intent of the reply before that, or ``UNKNOWN``.
        turn: Position in the session; 0 for policies that do not count turns.
    """

    remedy: int
    stage: int
    mood: int
    trust: int
    sold: bool
    failed: bool
    last: int
    before: int
    turn: int


@lru_cache(maxsize=2**16)
def read_message(text: str) -> Message:
    """Cues of one customer message."""
    lowered = text.lower()
    new_ticket = bool(_NEW_TICKET_RE.search(lowered))
    return Message(
        issue=_first(_ISSUE_RES, lowered),
        stage=0 if new_ticket else _last(_STAGE_RES, lowered),
        mood=_first(_MOOD_RES, lowered),
        trust=_first(_TRUST_RES, lowered),
        sold=bool(_SOLD_RE.search(lowered)),
        failed=bool(_FAILED_RE.search(lowered)),
        new_ticket=new_ticket,
    )


def read_cues(state: AgentState, reads: int, counts_turns: bool) -> Cues:
    """Cues of the newest message, with older ones of the window standing in for what it leaves out."""
    newest = read_message(state.observation)
    history = state.history[max(0, len(state.history) - reads) :] if reads else ()
    issue, stage, sold = newest.issue, newest.stage, newest.sold
    message = newest
    for observation, _ in reversed(history):
        if message.new_ticket:  # what was said before is about another issue
            break
        message = read_message(observation)
        issue = message.issue if issue == UNKNOWN else issue
        stage = message.stage if stage == UNKNOWN else stage
        sold = sold or message.sold
    remedy = UNKNOWN if issue == UNKNOWN else _REMEDY[issue]
    last = int(intent_of(history[-1][1])) if history else UNKNOWN
    before = int(intent_of(history[-2][1])) if len(history) > 1 else UNKNOWN
    turn = state.turn if counts_turns else 0
    return Cues(remedy, stage, newest.mood, newest.trust, sold, newest.failed, last, before, turn)


def _first(patterns: list[re.Pattern[str]], text: str) -> int:
    return next((i for i, pattern in enumerate(patterns) if pattern.search(text)), UNKNOWN)


def _last(patterns: list[re.Pattern[str]], text: str) -> int:
    return next((i for i in reversed(range(len(patterns))) if patterns[i].search(text)), UNKNOWN)


ANY_REMEDY = (Intent.FIX, Intent.ESCALATE, Intent.REFUND)
