"""What the agent can say: for every intent, the same openers before a dozen ways to put it.

``REPLIES[intent]`` lists the replies; every policy chooses uniformly among them, so the probability of a text
is exact. ``intent_of`` is the inverse, with a keyword classifier for texts of other agents.
"""

import re
from functools import lru_cache

import numpy as np

from preplay.environments.support_desk._config import INTENTS, Intent

_CORES: dict[Intent, tuple[str, ...]] = {
    Intent.ASK: (
        "could you tell me what exactly happened?",
        "please describe the problem in your own words.",
        "what are you seeing on your side?",
        "when did the trouble begin, and what did you notice?",
        "can you give me a few more details?",
        "tell me a little more about the issue, please.",
        "what went wrong, step by step?",
        "how can I help you today, and what is it about?",
        "which problem are you having right now?",
        "would you explain what the matter is?",
    ),
    Intent.DIAGNOSE: (
        "could you check one thing for me and read out the result?",
        "let us find the cause: please run the quick test now.",
        "please look at the status page and tell me what it shows.",
        "I would like to narrow this down; can you verify the last entry?",
        "what does the diagnostic screen say?",
        "please take a look at the label and send me the code.",
        "can you confirm what the log shows?",
        "let me run a diagnosis with you: is the second line marked?",
        "to find the root cause, check the settings and tell me the value.",
        "please test it once more and report what you see.",
    ),
    Intent.FIX: (
        "please restart it and install the latest update.",
        "here is the fix: reset the device and enter the new settings.",
        "try these steps: clear the cache, then reconnect.",
        "I have a solution: reinstall the app and pair it again.",
        "do a factory reset and follow the guide I am sending.",
        "switch to the other mode and reboot, that repairs it.",
        "let us fix it: unplug it for ten seconds and start the set-up again.",
        "follow this repair guide and it will work.",
        "please update the firmware and reboot.",
        "apply this patch and restart, that is the solution.",
    ),
    Intent.ESCALATE: (
        "I am passing this to our specialist team right away.",
        "I will escalate your case to the second level.",
        "a senior engineer will take over from here.",
        "let me transfer you to the responsible department.",
        "I have opened a priority ticket with our specialists.",
        "our operations team will handle it; I am forwarding it now.",
        "I am handing this over to my supervisor.",
        "the security and network specialists will take care of it.",
        "I will forward this to the experts with high priority.",
        "I am escalating this to the engineers on duty.",
    ),
    Intent.REFUND: (
        "I will refund the full amount to your card.",
        "you will get your money back within three days.",
        "I have issued a refund for you.",
        "we will reimburse you and send a replacement free of charge.",
        "I am crediting the amount to your account.",
        "let me return the money to you straight away.",
        "the refund is on its way.",
        "I will reverse the charge now.",
        "you receive a full credit note today.",
        "I have arranged a refund and a free return.",
    ),
    Intent.EMPATHISE: (
        "I am so sorry, I understand how annoying this must be.",
        "I apologise for the trouble this has caused you.",
        "that sounds really frustrating, and I feel with you.",
        "you have every right to be upset, and I am sorry.",
        "I can imagine how stressful that is for you.",
        "I am sorry that you had to go through this.",
        "thank you for your patience, I know this is not easy.",
        "please accept my apologies, this should not have happened.",
        "I hear you, and I regret the inconvenience.",
        "I understand your anger completely, and I apologise.",
    ),
    Intent.UPSELL: (
        "may I offer you our premium plan with a discount?",
        "many customers add the protection package for 5 euros.",
        "would you like to upgrade to the pro version today?",
        "we have a special offer on the newer model this week.",
        "you could save with our yearly bundle, shall I add it?",
        "how about the extended warranty for your device?",
        "I can recommend the premium upgrade, it is half price now.",
        "may I interest you in our family bundle?",
        "there is a great deal on the plus subscription for you.",
        "shall I add the priority service package to your plan?",
    ),
    Intent.CLOSE: (
        "I am closing the case now, have a nice day.",
        "if there is nothing else, I will close this conversation.",
        "that is all from me, goodbye.",
        "I will mark the ticket as done, take care.",
        "thank you for contacting us, bye for now.",
        "I consider this finished and end the chat here.",
        "we are done here, have a great day.",
        "I am ending our chat, all the best.",
        "the case is closed on our side, goodbye.",
        "let me close the ticket, and have a good evening.",
    ),
}
_OPENERS = ("", "Okay, ", "Hello, ", "Thanks for writing, ", "One moment, ", "Dear customer, ")


def _sentence(opener: str, core: str) -> str:
    return opener + core if opener else core[0].upper() + core[1:]


REPLIES: tuple[tuple[str, ...], ...] = tuple(
    tuple(_sentence(opener, core) for opener in _OPENERS for core in _CORES[Intent(intent)])
    for intent in range(INTENTS)
)
"""Replies of each intent, all equally likely given the intent."""

REPLY_COUNTS = np.array([len(replies) for replies in REPLIES])

_INTENT_OF_REPLY = {reply: intent for intent, replies in enumerate(REPLIES) for reply in replies}
if len(_INTENT_OF_REPLY) != REPLY_COUNTS.sum():
    raise ValueError("two replies of the support desk are equal, so propensities would be wrong")

_KEYWORDS: dict[Intent, str] = {
    Intent.UPSELL: r"upgrade|premium|offer you|special offer|discount|bundle|warranty|package|subscription"
    r"|half price|great deal|pro version|pro plan|add-on|upsell",
    Intent.REFUND: r"refund|money back|reimburse|credit(?:ing)? (?:note|the amount|your)|full credit"
    r"|return the money|reverse the charge|compensat",
    Intent.ESCALATE: r"escalat|specialist|supervisor|second level|senior|transfer you|department|forward"
    r"|pass(?:ing)? (?:this|it|you)|hand(?:ing)? (?:this|it|you) over|our (?:engineers|experts)|take over",
    Intent.FIX: r"restart|reboot|reset|reinstall|re-install|clear the cache|update|unplug|factory|repair"
    r"|patch|solution|try th(?:is|ese)|fix(?:es)? (?:it|this)|here is the fix|follow",
    Intent.DIAGNOSE: r"check|test|verify|diagnos|narrow|root cause|status page|log shows|find the cause"
    r"|confirm what|code|read out|error message|which version",
    Intent.CLOSE: r"clos(?:e|ing|ed)\b|goodbye|good bye|\bbye\b|we are done|have a (?:nice|great|good)"
    r"|end the chat|ending our chat|mark the ticket|finished|resolved your",
    Intent.EMPATHISE: r"sorry|apolog|understand (?:how|your)|frustrat|upset|regret|stressful|inconvenien"
    r"|i hear you|thank you for your patience",
    Intent.ASK: r"what|describe|details|tell me|explain|how can i help|when did|which problem|could you"
    r"|can you|more about",
}
_PATTERNS = [(intent, re.compile(pattern)) for intent, pattern in _KEYWORDS.items()]


@lru_cache(maxsize=2**16)
def intent_of(text: str) -> Intent:
    """The intent of a reply: exact for texts of ``REPLIES``, by keywords for any other text.

    The rule for other texts: each intent scores the number of its keywords found; the highest score wins,
    ties go to the first of upsell, refund, escalate, fix, diagnose, close, empathise, ask (an action outweighs the
    politeness around it); no keyword at all is ``Intent.OTHER``.
    """
    if (known := _INTENT_OF_REPLY.get(text)) is not None:
        return Intent(known)
    return classify_reply(text)


def classify_reply(text: str) -> Intent:
    """The keyword classifier behind ``intent_of``."""
    lowered = text.lower()
    scores = [(len(pattern.findall(lowered)), intent) for intent, pattern in _PATTERNS]
    best = max(score for score, _ in scores)
    return next(intent for score, intent in scores if score == best) if best else Intent.OTHER


def reply_intent(text: str) -> int:
    """The intent whose ``REPLIES`` hold this very text, or -1."""
    return _INTENT_OF_REPLY.get(text, -1)
