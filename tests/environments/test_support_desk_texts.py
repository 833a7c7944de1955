"""Texts: replies invert exactly, any text is understood, customers' cues can be read, wordings vary."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from preplay.environments import get_environment
from preplay.environments.support_desk import DEFAULT, REPLIES, Intent, classify_reply, intent_of, read_cues
from preplay.environments.support_desk._cues import UNKNOWN, read_message
from preplay.environments.support_desk._customer_texts import TEXT_DRAWS, render
from preplay.environments.support_desk._dynamics import START_DRAWS, STEP_DRAWS, start, step
from preplay.policies import AgentState

ALL_REPLIES = [(reply, intent) for intent, replies in enumerate(REPLIES) for reply in replies]


def test_every_reply_gives_back_its_intent():
    assert len(ALL_REPLIES) == 480
    assert all(intent_of(reply) == intent for reply, intent in ALL_REPLIES)


def test_keywords_alone_understand_the_replies():
    wrong = [(reply, Intent(intent)) for reply, intent in ALL_REPLIES if classify_reply(reply) != intent]
    assert len(wrong) <= 0.05 * len(ALL_REPLIES), wrong[:10]


@pytest.mark.parametrize(
    ("text", "intent"),
    [
        ("Hi there! Sorry to hear that. Could you describe what is going on?", Intent.ASK),
        ("Could you please run a quick speed test and send me the error message?", Intent.DIAGNOSE),
        ("I've processed a full refund; you will see it in 3-5 days. Sorry again!", Intent.REFUND),
        ("I'm transferring you: let me escalate this to a specialist.", Intent.ESCALATE),
        ("Please restart the router, then update the firmware.", Intent.FIX),
        ("I completely understand your frustration and I sincerely apologize.", Intent.EMPATHISE),
        ("Would you be interested in our premium bundle at a discount?", Intent.UPSELL),
        ("Glad it works! I'll close this ticket. Goodbye!", Intent.CLOSE),
        ("Colourless green ideas sleep furiously.", Intent.OTHER),
        ("", Intent.OTHER),
    ],
)
def test_free_text_is_understood(text, intent):
    assert intent_of(text) == intent


@settings(max_examples=50, deadline=None)
@given(st.text(max_size=300))
def test_any_text_is_some_intent(text):
    assert intent_of(text) in Intent


def test_the_newest_message_counts_and_older_ones_fill_its_gaps():
    broken = ("The screen was cracked when I opened the box.", "Hello, the refund is on its way.")
    newest = AgentState("There is one more thing. I cannot get the new router going.", history=(broken,))
    assert read_cues(newest, 2, False)[:2] == (Intent.FIX, 0)
    silent = AgentState("I do not follow you. I expected better.", history=(broken,), turn=3)
    assert read_cues(silent, 2, False)[:4] == (Intent.REFUND, 1, 1, UNKNOWN)
    assert read_cues(silent, 2, False).last == Intent.REFUND
    blind = read_cues(silent, 0, True)
    assert (blind.remedy, blind.stage, blind.last, blind.turn) == (UNKNOWN, UNKNOWN, UNKNOWN, 3)


def test_what_was_said_about_an_earlier_ticket_does_not_count():
    history = (
        ("The screen was cracked when I opened the box.", "Here."),
        ("Deal, book it. It works now.", "Bye."),
        ("I have another question. I need help with the router.", "What is it?"),
    )
    cues = read_cues(AgentState("Pardon?", history=history, turn=3), 40, False)
    assert (cues.remedy, cues.stage, cues.sold) == (UNKNOWN, 0, False)
    before = read_cues(AgentState("Pardon?", history=history[:2], turn=2), 40, False)
    assert (before.remedy, before.stage, before.sold) == (Intent.REFUND, 3, True)


def messages(sessions: int):
    """Hidden states after two random turns, with the customers' messages."""
    rng = np.random.default_rng(5)
    state = start(rng.random((sessions, START_DRAWS)), DEFAULT)
    for _ in range(2):
        turn = step(
            state, rng.integers(0, 4, len(state.stage)), rng.random((len(state.stage), STEP_DRAWS)), DEFAULT
        )
        state = turn.state.select(~turn.terminated)
    event = turn.event[~turn.terminated]
    return state, render(state, event, rng.random((len(event), TEXT_DRAWS)), DEFAULT)


def test_cues_are_right_whenever_they_are_read():
    state, texts = messages(4_000)
    read = [read_message(text) for text in texts]
    stage, mood, issue = (np.array([getattr(m, name) for m in read]) for name in ("stage", "mood", "issue"))
    for found, hidden, often in ((stage, state.stage, 0.95), (mood, state.patience, 0.6)):
        known = found >= 0
        assert known.mean() > often
        assert (found == hidden)[known].mean() > 0.99
    unsolved = (issue >= 0) & (state.stage < 3)
    assert (issue >= 0)[state.stage < 3].mean() > 0.75
    assert (issue == state.issue)[unsolved].mean() > 0.99


def test_thousands_of_wordings_but_not_too_many_to_embed():
    desk = get_environment("support_desk")
    texts: set[str] = set()
    for policy in desk.behaviour_policies().values():
        table = desk.simulate(policy, 500, seed=1)
        for column in ("observation", "action", "next_observation"):
            texts |= set(table[column].to_pylist())
    assert 3_000 <= len(texts) <= 6_000
