"""The controller between an agent and its harness: filter, score, gate, choose - or fall back, or ask."""

import hashlib
import json
import math
import uuid
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import numpy as np

from preplay.control._audit import AuditLog
from preplay.control._decision import Decision, Outcome
from preplay.control._goals import Goals
from preplay.control._rules import DEFAULT_RULES, Rule, judge
from preplay.critics import (
    ActionEncoder,
    Critic,
    DecisionState,
    EncodedPools,
    Scorer,
    load_scorer,
    saved_encoder,
)
from preplay.embedding import CachedEncoder

Rewrite = Callable[[DecisionState, str], str]
Evidence = Sequence[Sequence[float]]
_REMEMBERED = 4096


@dataclass(frozen=True)
class ControllerConfig:
    """When a controller acts by itself.

    Args:
        threshold: Least confidence (see :func:`calibrate_threshold`); below it the decision is ``abstain``'s.
        caution: Standard deviations of the ensemble taken off a score.
        max_distance: Largest distance of a state from the training data (about 1 inside it).
        abstain: What happens below the threshold or outside the training data.
        fallback: The safe action; None lets the first candidate that no rule blocks stand in.
        rules: Verdicts per risk class.
    """

    threshold: float = -math.inf
    caution: float = 0.0
    max_distance: float = math.inf
    abstain: Literal["fallback", "review"] = "fallback"
    fallback: str | None = None
    rules: tuple[Rule, ...] = DEFAULT_RULES


@dataclass
class Controller:
    """Drives an agent by a critic.

    Example::

        controller = Controller.load("runs/mine/critic", audit="runs/mine/audit")
        decision = controller.decide(DecisionState(task, observation, turn), candidates)
        if decision.outcome != "review":
            result = execute(decision.action)
            controller.record(decision, reward=result.reward)

    Args:
        scorer: A critic, a classifier or a distilled network.
        encoder: The one the scorer was trained with; another is refused.
        rewrite: Changes the chosen action before it is executed; the result must pass the rules, too.
        goals: Weights of the reward heads by context.
        audit: Where every decision is appended.
    """

    scorer: Scorer
    encoder: ActionEncoder
    config: ControllerConfig = field(default_factory=ControllerConfig)
    rewrite: Rewrite | None = None
    goals: Goals | None = None
    audit: AuditLog | None = None
    _memory: "OrderedDict[bytes, tuple[np.ndarray, float]]" = field(default_factory=OrderedDict, repr=False)

    def __post_init__(self):
        if isinstance(self.scorer, Critic):
            self.scorer.check_encoder(self.encoder.fingerprint, where="Controller")

    @classmethod
    def load(
        cls,
        critic: str | Path,
        config: ControllerConfig | None = None,
        *,
        audit: str | None = None,
        encoder: CachedEncoder | None = None,
    ) -> "Controller":
        """Of a critic or classifier on disk; ``encoder`` is the sentence encoder it was trained with, if any."""
        log = AuditLog(audit) if audit else None
        return cls(
            load_scorer(critic), saved_encoder(critic, encoder), config or ControllerConfig(), audit=log
        )

    def decide(
        self,
        state: DecisionState,
        candidates: Sequence[str],
        *,
        evidence: Evidence | None = None,
        context: str = "",
    ) -> Decision:
        """Decide on one pool; candidates may be few, none, huge, dangerous or broken: there is always a decision."""
        return self.decide_many([(state, candidates)], [evidence], [context])[0]

    def decide_many(
        self,
        work: Sequence[tuple[DecisionState, Sequence[str]]],
        evidence: Sequence[Evidence | None] | None = None,
        contexts: Sequence[str] | None = None,
    ) -> list[Decision]:
        """Decide on many pools with one pass of the critic over what was not scored before."""
        evidence, contexts = evidence or [None] * len(work), contexts or [""] * len(work)
        scored = self._score(work, evidence, contexts)
        decisions = [
            replace(self._decide(state, candidates, scores, distance), evidence=_numbers(known))
            for (state, candidates), (scores, distance), known in zip(work, scored, evidence, strict=True)
        ]
        if self.audit is not None:
            self.audit.append_decisions(work, decisions)
        return decisions

    def record(self, decision: Decision, *, reward: float, success: bool | None = None) -> None:
        """Tell the audit log how a decision went; it is joined by the decision's id."""
        if self.audit is not None:
            self.audit.append_outcome(decision.id, reward, success)

    def _decide(
        self, state: DecisionState, candidates: Sequence[str], scores: np.ndarray, distance: float
    ) -> Decision:
        verdicts = [judge(candidate, self.config.rules) for candidate in candidates]
        reasons = [
            f"candidate {i} {v}ed by rule ({why})" for i, (v, why) in enumerate(verdicts) if v == "block"
        ]
        allowed = np.array([verdict != "block" for verdict, _ in verdicts], bool)
        usable = np.where(allowed & np.isfinite(scores), scores, np.nan)
        if lost := int((allowed & ~np.isfinite(scores)).sum()):
            reasons.append(f"{lost} candidates could not be scored")
        if not np.isfinite(usable).any():
            why = "no candidates" if not len(candidates) else "no candidate is left"
            return self._abstain(candidates, allowed, usable, [*reasons, why], "fallback")
        best = int(np.nanargmax(usable))
        if distance > self.config.max_distance:
            reasons.append(
                f"the state is outside the training data ({distance:.2f} > {self.config.max_distance:.2f})"
            )
            return self._abstain(candidates, allowed, usable, reasons, self.config.abstain)
        if usable[best] < self.config.threshold:
            reasons.append(f"confidence {usable[best]:.3f} is below {self.config.threshold:.3f}")
            return self._abstain(candidates, allowed, usable, reasons, self.config.abstain)
        if verdicts[best][0] == "review":
            return self._made(
                "review", None, None, usable, [*reasons, f"rule asks for review ({verdicts[best][1]})"]
            )
        return self._choose(state, candidates, best, allowed, usable, reasons)

    def _choose(
        self,
        state: DecisionState,
        candidates: Sequence[str],
        best: int,
        allowed: np.ndarray,
        usable: np.ndarray,
        reasons: list[str],
    ) -> Decision:
        action = candidates[best] if self.rewrite is None else self.rewrite(state, candidates[best])
        verdict, why = judge(action, self.config.rules)
        if verdict == "allow":
            return self._made("chosen", action, best, usable, reasons)
        reasons = [*reasons, f"the rewritten action needs {verdict} ({why})"]
        if verdict == "review":
            return self._made("review", None, None, usable, reasons)
        return self._abstain(candidates, allowed, usable, reasons, "fallback")

    def _abstain(
        self,
        candidates: Sequence[str],
        allowed: np.ndarray,
        usable: np.ndarray,
        reasons: list[str],
        outcome: Outcome,
    ) -> Decision:
        """Fall back or ask; without anything to fall back to, ask."""
        safe = self.config.fallback
        if safe is None:
            safe = next((c for c in candidates if judge(c, self.config.rules)[0] == "allow"), None)
        if outcome == "review" or safe is None:
            return self._made("review", None, None, usable, reasons)
        return self._made("fallback", safe, None, usable, reasons)

    def _made(
        self, outcome: Outcome, action: str | None, index: int | None, usable: np.ndarray, reasons: list[str]
    ) -> Decision:
        finite = usable[np.isfinite(usable)]
        confidence = float(finite.max()) if len(finite) else math.nan
        scores = tuple(map(float, usable))
        return Decision(uuid.uuid4().hex, outcome, action, index, scores, confidence, tuple(reasons))

    def _score(
        self,
        work: Sequence[tuple[DecisionState, Sequence[str]]],
        evidence: Sequence[Evidence | None],
        contexts: Sequence[str],
    ) -> list[tuple[np.ndarray, float]]:
        """(scores, state distance) per pool; pools seen before come from memory."""
        keys = [_key(s, c, e, x) for (s, c), e, x in zip(work, evidence, contexts, strict=True)]
        new = {key: i for i, key in enumerate(keys) if len(work[i][1]) and key not in self._memory}
        if new:
            fresh = self._score_new(
                [work[i] for i in new.values()],
                [evidence[i] for i in new.values()],
                [contexts[i] for i in new.values()],
            )
            self._memory.update(zip(new, fresh, strict=True))
        results = [
            self._memory[k] if len(c) else (np.zeros(0), 0.0) for k, (_, c) in zip(keys, work, strict=True)
        ]
        for key in keys:
            if key in self._memory:
                self._memory.move_to_end(key)
        while len(self._memory) > _REMEMBERED:
            self._memory.popitem(last=False)
        return results

    def _score_new(
        self,
        work: Sequence[tuple[DecisionState, Sequence[str]]],
        evidence: Sequence[Evidence | None],
        contexts: Sequence[str],
    ) -> list[tuple[np.ndarray, float]]:
        pools = self.encoder.encode([s for s, _ in work], [c for _, c in work], evidence)
        distance = self.scorer.state_distance(pools)
        scores = {context: self._cautious(pools, context) for context in set(contexts)}
        spans = zip(pools.offsets[:-1], pools.offsets[1:], strict=True)
        return [(scores[contexts[i]][a:b], float(distance[i])) for i, (a, b) in enumerate(spans)]

    def _cautious(self, pools: EncodedPools, context: str) -> np.ndarray:
        """Scores minus the ensemble's disagreement, weighed for the context, float64 [M]."""
        if self.goals is not None and isinstance(self.scorer, Critic):
            scores = self.scorer.score(pools, self.goals.weights(context))
        else:
            scores = self.scorer.score(pools)
        return scores.mean - self.config.caution * np.nan_to_num(scores.spread)


def _key(state: DecisionState, candidates: Sequence[str], evidence: Evidence | None, context: str) -> bytes:
    known = [state.task, state.observation, state.turn, list(candidates), _numbers(evidence), context]
    return hashlib.sha256(json.dumps(known).encode()).digest()


def _numbers(evidence: Evidence | None) -> tuple[tuple[float, ...], ...] | None:
    return None if evidence is None else tuple(tuple(float(x) for x in row) for row in evidence)
