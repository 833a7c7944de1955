"""The hidden dynamics, vectorised over B sessions. The Gymnasium environment and the simulator share it.

All randomness enters as uniform draws, one row per session, so that a session's fate depends only on its own
draws and on what the agent does.
"""

from dataclasses import dataclass, fields, replace

import numpy as np

from preplay.environments.support_desk._config import (
    ISSUES,
    MAX_PATIENCE,
    MAX_TRUST,
    PRODUCTS,
    REMEDY,
    SOLVED,
    DeskConfig,
    Event,
)

START_DRAWS = 6
STEP_DRAWS = 9
PERSONAS = 3
NAMES = 8

# A turn's kind: the intent, with the three remedies told apart only by being right or wrong.
ASK, DIAGNOSE, RIGHT, WRONG, EMPATHISE, UPSELL, CLOSE, OTHER = range(8)
_KIND = np.array([ASK, DIAGNOSE, WRONG, WRONG, WRONG, EMPATHISE, UPSELL, CLOSE, OTHER])

_PROGRESS = np.zeros((8, 4))
"""Probability [kind, stage] that the case moves forward."""
_PROGRESS[ASK] = [0.85, 0, 0, 0]
_PROGRESS[DIAGNOSE] = [0.45, 0.80, 0, 0]
_PROGRESS[RIGHT] = [0.08, 0.40, 0.88, 0]

_NEXT_STAGE = np.tile(np.arange(4), (8, 1))
"""Stage [kind, stage] after the case moved forward."""
_NEXT_STAGE[ASK, 0] = 1
_NEXT_STAGE[DIAGNOSE, :2] = [1, 2]
_NEXT_STAGE[RIGHT, :3] = SOLVED

_ANNOYANCE = np.array(
    [
        [0.25, 0.60, 0.60, 0.50],  # ask
        [0.35, 0.25, 0.60, 0.50],  # diagnose
        [0.50, 0.45, 0.30, 0.50],  # the right remedy
        [0.95, 0.95, 0.95, 0.50],  # a wrong remedy
        [0.40, 0.40, 0.40, 0.30],  # empathise
        [0.90, 0.90, 0.90, 0.35],  # upsell
        [1.00, 1.00, 1.00, 0.00],  # close
        [0.60, 0.60, 0.60, 0.40],  # other
    ]
)
"""Probability [kind, stage] that a turn without success costs patience."""

_SALE = np.array([0.05, 0.35, 0.70])
"""Probability [trust] that an offer is taken once the case is solved."""
_IMPATIENT_PROGRESS = 0.7
_DISTRUST_PROGRESS = 0.8
_SOOTHE = 0.85
_WEAR = 0.06
_LEAVES_HAPPY = 0.10
_LEAVES_ANGRY = 0.25
_CLOSE_CHURN = np.array([0.95, 0.80, 0.60, 0.45])
"""Probability [patience] that closing an unsolved case loses the customer."""

_EVENT_DONE = np.array([Event.TOLD_DETAILS, Event.CHECK_DONE, Event.SOLVED])
_EVENT_FAILED = np.array(
    [
        [Event.STILL_VAGUE, Event.TOLD_ALREADY, Event.TOLD_ALREADY, Event.NOTHING_LEFT],
        [Event.STILL_VAGUE, Event.CHECK_FAILED, Event.TOLD_ALREADY, Event.NOTHING_LEFT],
        [Event.NEARLY_SOLVED, Event.NEARLY_SOLVED, Event.NEARLY_SOLVED, Event.NOTHING_LEFT],
        [Event.WRONG_REMEDY, Event.WRONG_REMEDY, Event.WRONG_REMEDY, Event.NOTHING_LEFT],
        [Event.UNMOVED, Event.UNMOVED, Event.UNMOVED, Event.NOTHING_LEFT],
        [Event.OFFER_TOO_EARLY, Event.OFFER_TOO_EARLY, Event.OFFER_TOO_EARLY, Event.NO_SALE],
        [Event.CLOSE_REFUSED, Event.CLOSE_REFUSED, Event.CLOSE_REFUSED, Event.RESOLVED],
        [Event.CONFUSED, Event.CONFUSED, Event.CONFUSED, Event.NOTHING_LEFT],
    ]
)


@dataclass(frozen=True)
class DeskState:
    """Hidden state of B sessions; every field is an array [B]. ``owed`` is reward not yet paid."""

    issue: np.ndarray
    stage: np.ndarray
    patience: np.ndarray
    trust: np.ndarray
    sold: np.ndarray
    tickets: np.ndarray
    turn: np.ndarray
    owed: np.ndarray
    persona: np.ndarray
    product: np.ndarray
    name: np.ndarray

    def select(self, rows: np.ndarray) -> "DeskState":
        """The given rows (indices or mask)."""
        return DeskState(**{f.name: getattr(self, f.name)[rows] for f in fields(self)})


@dataclass(frozen=True)
class DeskTurn:
    """What one turn did to B sessions; every field but ``state`` is an array [B]."""

    state: DeskState
    event: np.ndarray
    reward: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray
    resolved: np.ndarray
    sale: np.ndarray
    churned: np.ndarray


def start(draws: np.ndarray, config: DeskConfig) -> DeskState:
    """Hidden state of new sessions from uniform draws [B, START_DRAWS]."""
    count = len(draws)
    zeros = np.zeros(count, dtype=np.int64)
    return DeskState(
        issue=_pick(draws[:, 0], len(ISSUES)),
        stage=zeros,
        patience=1 + (draws[:, 1] > 0.25).astype(np.int64) + (draws[:, 1] > 0.75),
        trust=(draws[:, 2] > 0.25).astype(np.int64) + (draws[:, 2] > 0.85),
        sold=np.zeros(count, dtype=bool),
        tickets=zeros + config.tickets,
        turn=zeros,
        owed=np.zeros(count),
        persona=_pick(draws[:, 3], PERSONAS),
        product=_pick(draws[:, 4], len(PRODUCTS)),
        name=_pick(draws[:, 5], NAMES),
    )


def step(state: DeskState, intent: np.ndarray, draws: np.ndarray, config: DeskConfig) -> DeskTurn:
    """One turn: the agent's intents int [B] and uniform draws [B, STEP_DRAWS] give the next state."""
    kind = np.where(intent == REMEDY[state.issue], RIGHT, _KIND[intent])
    solved_before = state.stage == SOLVED
    progress = draws[:, 0] < _progress_probability(state, kind, config)
    soothed = (kind == EMPATHISE) & (state.patience <= 1) & (draws[:, 0] < _SOOTHE)
    sale = _sale(state, kind, draws[:, 0])
    finished = solved_before & ((kind == CLOSE) | (~sale & (draws[:, 1] < _LEAVES_HAPPY)))
    smooth = progress | soothed | sale | finished
    stage = np.where(progress, _NEXT_STAGE[kind, state.stage], state.stage)

    annoyed = ~smooth & (draws[:, 2] < config.annoyance_scale * _ANNOYANCE[kind, state.stage])
    worn = ~finished & ~annoyed & ~soothed & (draws[:, 3] < config.annoyance_scale * _WEAR)
    gain = (progress & (stage == SOLVED)) | soothed
    patience = state.patience - annoyed - worn + gain
    trust = _trust(state, kind, progress, soothed, stage, draws[:, 4])

    hung_up = (kind == CLOSE) & ~solved_before & (draws[:, 5] < _CLOSE_CHURN[state.patience])
    walked_out = ~smooth & (patience == 0) & (draws[:, 6] < config.annoyance_scale * _LEAVES_ANGRY)
    churned = ~finished & (hung_up | walked_out | (patience < 0))
    resolved = finished & (state.tickets == 1)
    next_ticket = finished & ~resolved

    event = np.where(progress, _EVENT_DONE[np.maximum(stage - 1, 0)], _EVENT_FAILED[kind, state.stage])
    for happened, code in (
        (soothed, Event.SOOTHED),
        (sale, Event.SALE),
        (next_ticket, Event.NEXT_TICKET),
        (resolved, Event.RESOLVED),
        (churned, Event.CHURNED),
    ):
        event = np.where(happened, code, event)
    after = replace(
        state,
        issue=np.where(next_ticket, _pick(draws[:, 7], len(ISSUES)), state.issue),
        stage=np.where(next_ticket, 0, stage),
        patience=np.clip(patience, 0, MAX_PATIENCE),
        trust=trust,
        sold=(state.sold | sale) & ~next_ticket,
        tickets=state.tickets - finished,
        turn=state.turn + 1,
    )
    return _settle(after, event, finished, resolved, sale, churned, config)


def _progress_probability(state: DeskState, kind: np.ndarray, config: DeskConfig) -> np.ndarray:
    factor = np.where(state.patience == 0, _IMPATIENT_PROGRESS, 1.0)
    factor = factor * np.where(state.trust == 0, _DISTRUST_PROGRESS, 1.0)
    return config.progress_scale * factor * _PROGRESS[kind, state.stage]


def _sale(state: DeskState, kind: np.ndarray, draw: np.ndarray) -> np.ndarray:
    willing = (kind == UPSELL) & (state.stage == SOLVED) & ~state.sold & (state.patience >= 1)
    return willing & (draw < _SALE[state.trust])


def _trust(
    state: DeskState,
    kind: np.ndarray,
    progress: np.ndarray,
    soothed: np.ndarray,
    stage: np.ndarray,
    draw: np.ndarray,
) -> np.ndarray:
    solved = progress & (stage == SOLVED)
    gained = (solved & (draw < 0.6)) | (soothed & (draw < 0.5)) | (progress & ~solved & (draw < 0.25))
    unsolved = state.stage < SOLVED
    lost = ((kind == WRONG) | (kind == UPSELL)) & unsolved & (draw < 0.7)
    return np.clip(state.trust + gained - lost, 0, MAX_TRUST)


def _settle(
    state: DeskState,
    event: np.ndarray,
    finished: np.ndarray,
    resolved: np.ndarray,
    sale: np.ndarray,
    churned: np.ndarray,
    config: DeskConfig,
) -> DeskTurn:
    earned = (
        finished * (config.resolved_reward / config.tickets)
        + sale * config.sale_reward
        - churned * config.churn_cost
        - config.turn_cost
    )
    terminated = resolved | churned
    truncated = ~terminated & (state.turn >= config.horizon)
    owed = state.owed + earned
    pay = terminated | truncated | (not config.delayed_reward)
    return DeskTurn(
        state=replace(state, owed=np.where(pay, 0.0, owed)),
        event=event,
        reward=np.where(pay, owed, 0.0),
        terminated=terminated,
        truncated=truncated,
        resolved=resolved,
        sale=sale,
        churned=churned,
    )


def _pick(draw: np.ndarray, options: int) -> np.ndarray:
    return (draw * options).astype(np.int64)
