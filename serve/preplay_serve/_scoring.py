"""Decisions: many at once, by several critics that are loaded when they are first asked for and swapped whole."""

import datetime as dt
import logging
import math
import threading
from collections import OrderedDict, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from preplay.control import Controller, Decision
from preplay.critics import DecisionState
from preplay.errors import PreplayError
from preplay_serve._config import ControllerSettings, ServerConfig
from preplay_serve._critic import BoundedEncoder, ServedCritic, load_served_critic
from preplay_serve.store import DecisionContent, DecisionRecord, Store, new_id

log = logging.getLogger(__name__)
KINDS = {"chosen": "act", "fallback": "fallback", "review": "review"}


@dataclass(frozen=True)
class ScoreItem:
    """One decision that is asked for."""

    model: str
    state: DecisionState
    candidates: tuple[str, ...]
    evidence: tuple[tuple[float, ...], ...] | None = None
    session_id: str = ""
    token: str = ""

    @property
    def characters(self) -> int:
        """How much there is to embed."""
        return len(self.state.task) + len(self.state.observation) + sum(map(len, self.candidates))


@dataclass(frozen=True)
class Scored:
    """A decision with what made it. The record's texts may be left out, ``action`` is what to execute."""

    record: DecisionRecord
    action: str | None
    encoder: str


class ModelPool:
    """The critics that a replica holds, the least recently used going first when there are too many."""

    def __init__(self, config: ServerConfig, store: Store):
        self._config, self._store = config, store
        self._loaded: OrderedDict[str, tuple[ServedCritic, Controller]] = OrderedDict()
        self._encoders: dict[str, BoundedEncoder] = {}
        self._refused: dict[str, str] = {}
        self._lock = threading.Lock()

    def get(self, name: str) -> tuple[ServedCritic, Controller]:
        """The critic of this name, loaded if it is not.

        Raises:
            PreplayError: When nothing of that name is published.
        """
        with self._lock:
            if name not in self._loaded:
                self._loaded[name] = self._load(name)
            self._loaded.move_to_end(name)
            while len(self._loaded) > self._config.scoring.loaded_models:
                self._loaded.popitem(last=False)
            return self._loaded[name]

    def holds(self, name: str) -> bool:
        """Whether this critic is loaded."""
        return name in self._loaded

    def warm(self) -> None:
        """Load as many published critics as are kept loaded, so that the first requests need not wait."""
        for record in self._store.artifacts.list("critic")[: self._config.scoring.loaded_models]:
            try:
                self.get(record.name)
            except PreplayError as error:
                log.error("critic %s cannot be loaded: %s", record.name, error.what)

    def refresh(self) -> None:
        """Load newly published versions beside those in service, and swap them in whole.

        One that cannot be loaded is told once, and what is in service stays.
        """
        for name, (critic, _) in list(self._loaded.items()):
            record = self._store.artifacts.get("critic", name)
            if record is None or record.version in (critic.version, self._refused.get(name)):
                continue
            try:
                fresh = self._load(name)
            except PreplayError as error:
                self._refused[name] = record.version
                log.error("critic %s stays at %s: %s", name, critic.version[:12], error.what)
                continue
            with self._lock:
                self._loaded[name] = fresh
            log.info("critic %s is now %s", name, record.version[:12])

    def _load(self, name: str) -> tuple[ServedCritic, Controller]:
        record = self._store.artifacts.get("critic", name)
        if record is None:
            raise PreplayError(f"there is no critic {name!r}.", fix="See /v1/models.")
        critic = load_served_critic(record.path, self._config, encoders=self._encoders)
        settings = self._config.scoring.controllers
        chosen = settings.get(name) or settings.get("*") or ControllerSettings()
        return critic, critic.controller(chosen)


class Scoring:
    """Decides and keeps what it decided."""

    def __init__(self, config: ServerConfig, store: Store):
        self._config, self._store = config, store
        self.pool = ModelPool(config, store)

    def decide(self, items: Sequence[ScoreItem]) -> list[Scored | PreplayError]:
        """Decide on all items, one pass per critic, and store the decisions in one transaction."""
        groups: dict[str, list[int]] = defaultdict(list)
        for place in sorted(range(len(items)), key=lambda i: items[i].characters):
            groups[items[place].model].append(place)
        answers: dict[int, Scored | PreplayError] = {}
        for model, places in groups.items():
            answers |= zip(places, self._decide(model, [items[i] for i in places]), strict=True)
        records = [answer.record for answer in answers.values() if isinstance(answer, Scored)]
        if records:
            self._store.decisions.add(records)
        return [answers[i] for i in range(len(items))]

    def _decide(self, model: str, items: list[ScoreItem]) -> list[Scored | PreplayError]:
        try:
            critic, controller = self.pool.get(model)
        except PreplayError as error:
            return [error] * len(items)
        faults = [_fault(item, len(critic.encoder.evidence)) for item in items]
        good = [item for item, fault in zip(items, faults, strict=True) if fault is None]
        decisions = iter(
            controller.decide_many(
                [(item.state, item.candidates) for item in good], [item.evidence for item in good]
            )
        )
        return [
            fault or self._scored(item, next(decisions), critic)
            for item, fault in zip(items, faults, strict=True)
        ]

    def _scored(self, item: ScoreItem, decision: Decision, critic: ServedCritic) -> Scored:
        keep = self._config.scoring.keep_texts
        content = DecisionContent(
            task=item.state.task if keep else "",
            observation=item.state.observation if keep else "",
            turn=item.state.turn,
            candidates=item.candidates if keep else (),
            scores=tuple(score if math.isfinite(score) else None for score in decision.scores),
            action=decision.action if keep else None,
            index=decision.index,
            confidence=decision.confidence if math.isfinite(decision.confidence) else None,
            reasons=decision.reasons,
            evidence=decision.evidence if keep else None,
        )
        record = DecisionRecord(
            id=new_id("de"),
            time=dt.datetime.now(dt.UTC),
            model=item.model,
            version=critic.version,
            decision=KINDS[decision.outcome],  # pyright: ignore[reportArgumentType]
            token=item.token,
            session_id=item.session_id,
            content=content,
        )
        return Scored(record, decision.action, critic.encoder_id)


def _fault(item: ScoreItem, width: int) -> PreplayError | None:
    """What is wrong with an item for this critic."""
    if item.evidence is None:
        return None
    if len(item.evidence) != len(item.candidates) or any(len(row) != width for row in item.evidence):
        return PreplayError(
            f"evidence must have a row per candidate with {width} numbers each, as this critic was trained with."
        )
    return None
