"""What the customer says: what happened, mood, where the case stands, trust; several wordings of each."""

import numpy as np

from preplay.environments.support_desk._config import ISSUES, PRODUCTS, SOLVED, DeskConfig, Event
from preplay.environments.support_desk._dynamics import NAMES, DeskState

TEXT_DRAWS = 6

NAME_LIST = ("Maria", "Tom", "Aisha", "Jonas", "Chen", "Olga", "Pedro", "Kate")

MOOD: tuple[tuple[str, ...], ...] = (
    (
        "This is outrageous.",
        "I am furious by now.",
        "I have had enough of this!",
        "One more of these and I am gone.",
    ),
    (
        "This is getting frustrating.",
        "I am a bit fed up.",
        "It takes too long for my taste.",
        "I expected better.",
    ),
    ("", "", "Fair enough.", "No complaints so far."),
    (
        "You are very kind!",
        "Much appreciated!",
        "So glad I reached you.",
        "No rush, I have time.",
    ),
)
"""By patience 0 to 3."""

TRUST: tuple[tuple[str, ...], ...] = (
    ("I doubt that you can help me.", "Are you even reading this?"),
    (),
    ("I rely on your advice.", "You clearly know your job."),
)
"""By trust 0 to 2."""

EVENT: dict[Event, tuple[str, ...]] = {
    Event.OPENING: ("Hi, {name} here.", "Good day, my name is {name}."),
    Event.STILL_VAGUE: ("I am not sure what you mean.", "Hard to say more.", "I cannot describe it well."),
    Event.TOLD_DETAILS: ("So here is what happened.", "Let me explain.", "Here are the details."),
    Event.TOLD_ALREADY: ("I already told you that.", "You asked me that before.", "Again the same question?"),
    Event.CHECK_DONE: ("I did the check.", "Just had a look for you.", "Here is the result."),
    Event.CHECK_FAILED: (
        "I could not do that check.",
        "I do not know where to look.",
        "The check got stuck.",
    ),
    Event.NEARLY_SOLVED: (
        "Better, but not there yet.",
        "That nearly did it.",
        "Almost, something is missing.",
    ),
    Event.WRONG_REMEDY: ("That is not what I need.", "Wrong track, I think.", "That does nothing for me."),
    Event.SOLVED: ("That did it!", "Hooray!", "Look at that."),
    Event.SOOTHED: ("Good that you see it.", "Thanks for saying that.", "Fine, that helps a little."),
    Event.UNMOVED: ("Kind words, but let us go on.", "No need for that.", "Can we get on with it?"),
    Event.OFFER_TOO_EARLY: ("I will not buy anything now.", "Stop selling me things.", "An advert, now?"),
    Event.SALE: ("Good offer, I take it.", "Yes, add that to my plan.", "Deal, book it."),
    Event.NO_SALE: ("No thanks, I need no extras.", "I will pass on the offer.", "Not interested in more."),
    Event.CLOSE_REFUSED: ("Wait, do not close this!", "We are not finished yet!", "Do not hang up on me!"),
    Event.NOTHING_LEFT: ("No more steps needed.", "We can wrap up.", "There is nothing left to do."),
    Event.CONFUSED: ("I do not follow you.", "What is that supposed to mean?", "Pardon?"),
    Event.NEXT_TICKET: ("There is one more thing.", "Now for my next problem.", "I have another question."),
}

ENDING: dict[Event, tuple[str, ...]] = {
    Event.RESOLVED: (
        "Thank you, goodbye!",
        "Great, that was all. Bye!",
        "All good, have a nice day.",
        "Perfect, I am happy. See you.",
        "Thanks, case closed for me.",
        "Wonderful, bye bye.",
    ),
    Event.CHURNED: (
        "I am cancelling my contract. Goodbye.",
        "That is it, I am switching to another company.",
        "Forget it, I am leaving.",
        "I want to cancel everything, now.",
        "You have lost a customer.",
        "I am done with you people.",
    ),
}

STATUS: tuple[dict[str, tuple[str, ...]], ...] = (
    {
        "billing": ("The bill for my {p} looks odd.", "Something about the {p} payment is strange."),
        "damaged": ("The {p} arrived in a bad state.", "The delivered {p} does not look right."),
        "outage": ("My {p} has no service.", "Nothing comes through on the {p}."),
        "locked": ("I cannot get into my {p} account.", "Signing in for the {p} fails."),
        "setup": ("I cannot get the new {p} going.", "Installing the {p} is a mess."),
        "slow": ("The {p} keeps hanging.", "My {p} is terribly slow."),
        "": ("There is a problem with my {p}.", "I need help with the {p}."),
    },
    {
        "billing": ("I was charged twice this month.", "My card shows the same payment two times."),
        "damaged": (
            "The screen was cracked when I opened the box.",
            "The casing is broken and a part rattles.",
        ),
        "outage": (
            "The signal has been gone in the whole street since last night.",
            "All lamps are red since noon.",
        ),
        "locked": (
            "It says the login is blocked for security reasons.",
            "After three tries I am locked out.",
        ),
        "setup": ("It stops at the pairing step.", "The wizard never finds it on the Wi-Fi."),
        "slow": (
            "Since the last version every page needs a minute.",
            "The app freezes when I open the menu.",
        ),
        "": ("You have my description.", "It is as I described it."),
    },
    {
        "billing": ("My bank confirms both bookings came from you.", "Both bookings carry one order number."),
        "damaged": (
            "The photos show it broke on the transport.",
            "The parcel's seal was torn, see the photos.",
        ),
        "outage": ("The line test failed at your end.", "The status page says your node is down."),
        "locked": ("The notice reads SEC-LOCK, unlock by staff only.", "Code SEC-LOCK shows on the login."),
        "setup": ("It still has the old firmware.", "The label says 5 GHz mode."),
        "slow": ("The storage is 98 percent full.", "The log shows the cache overflowing."),
        "": ("You have the test result now.", "The check came out as I said."),
    },
    {"": ("It works now.", "The problem is gone.", "Everything is sorted out.", "All is well again.")},
)
"""By stage and issue; under "" what is said when the issue is not mentioned."""

_VARIANTS = 3
_NEWS_CUE = 0.88
"""Probability that a customer with news names the issue."""


def _status_table() -> list[str]:
    """Status sentences flattened as [stage, issue (last: none), product, variant of 4]."""
    table: list[str] = []
    for stage, by_issue in enumerate(STATUS):
        for issue in (*ISSUES, ""):
            options = by_issue[""] if stage == SOLVED else by_issue[issue]
            for product in PRODUCTS:
                table += [options[v % len(options)].format(p=product) for v in range(4)]
    return table


_STATUS_FLAT = _status_table()


def _event_table() -> list[str]:
    """Event sentences flattened as [event, name, variant]."""
    table: list[str] = []
    for event in Event:
        options = EVENT.get(event, ("",))
        for name in NAME_LIST:
            table += [options[v % len(options)].format(name=name) for v in range(_VARIANTS)]
    return table


_EVENT_FLAT = _event_table()


def render(state: DeskState, event: np.ndarray, draws: np.ndarray, config: DeskConfig) -> list[str]:
    """The customers' messages in hidden states [B] after events [B], from uniform draws [B, TEXT_DRAWS]."""
    mood, trust = _mood_columns(state, event, draws, config)
    event_text = (event * NAMES + state.name) * _VARIANTS + (draws[:, 3] * _VARIANTS).astype(np.int64)
    status_text = _status_column(state, event, draws, config)
    ending = (draws[:, 3] * 6).astype(np.int64)
    messages = []
    columns = zip(*(c.tolist() for c in (event, mood, event_text, status_text, trust, ending)), strict=True)
    for code, mood_at, event_at, status_at, trust_at, ending_at in columns:
        if code >= Event.RESOLVED:
            messages.append(ENDING[code][ending_at])
            continue
        parts = (_EVENT_FLAT[event_at], _MOOD_FLAT[mood_at], _STATUS_FLAT[status_at], _TRUST_FLAT[trust_at])
        messages.append(" ".join(filter(None, parts)))
    return messages


_MOOD_FLAT = [text for texts in MOOD for text in texts] + [""]
_TRUST_FLAT = [*TRUST[0], *TRUST[2], ""]
_STATUS_FLAT.append("")


def _mood_columns(
    state: DeskState, event: np.ndarray, draws: np.ndarray, config: DeskConfig
) -> tuple[np.ndarray, np.ndarray]:
    """Rows of the mood and trust sentences; the last row of each table is silence."""
    shown = draws[:, 0] < config.cue_mood
    variant = (draws[:, 1] * 4).astype(np.int64)
    mood = np.where(shown, state.patience * 4 + variant, len(_MOOD_FLAT) - 1)
    trust_row = np.where(state.trust == 0, variant % 2, 2 + variant % 2)
    trust = np.where(shown & (state.trust != 1) & (event != Event.OPENING), trust_row, len(_TRUST_FLAT) - 1)
    return mood, trust


def _status_column(state: DeskState, event: np.ndarray, draws: np.ndarray, config: DeskConfig) -> np.ndarray:
    """Rows of the status sentences. News (a new issue, its details, a solution) is always told."""
    news = np.isin(
        event, (Event.OPENING, Event.NEXT_TICKET, Event.TOLD_DETAILS, Event.CHECK_DONE, Event.SOLVED)
    )
    shown = news | (draws[:, 4] < config.cue_stage)
    told = np.where(news, draws[:, 4] < _NEWS_CUE, draws[:, 4] < config.cue_stage * config.cue_issue)
    issue = np.where(told, state.issue, len(ISSUES))
    variant = (draws[:, 5] * 4).astype(np.int64)
    row = ((state.stage * (len(ISSUES) + 1) + issue) * len(PRODUCTS) + state.product) * 4 + variant
    return np.where(shown, row, len(_STATUS_FLAT) - 1)
