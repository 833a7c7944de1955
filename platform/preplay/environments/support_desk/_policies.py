"""Stochastic policies over replies, with exact log-probabilities of every text."""

from collections.abc import Callable, Sequence

import numpy as np

from preplay.environments.support_desk import _rules as rules
from preplay.environments.support_desk._agent_texts import REPLIES, REPLY_COUNTS, reply_intent
from preplay.environments.support_desk._config import INTENTS
from preplay.environments.support_desk._cues import UNKNOWN, Cues, read_cues
from preplay.policies import ActionBatch, AgentState

_LOG_COUNTS = np.log(REPLY_COUNTS)


class DeskPolicy:
    """A softened rule over cues: ``(1 - softness) * rule + softness / 8`` over intents, then any reply.

    Args:
        name: Name in reports.
        rule: Weights over intents (summing to 1) given the cues that the texts of a state hold.
        softness: Share of uniform choice, in (0, 1]; keeps every log-probability finite.
        reads: Earlier turns it looks at.
        counts_turns: Whether it also knows the turn number.
    """

    deterministic = False

    def __init__(
        self,
        name: str,
        rule: Callable[[Cues], rules.Weights],
        softness: float = 0.06,
        reads: int = 2,
        counts_turns: bool = False,
    ):
        self.name, self.reads = name, reads
        self._rule, self._softness, self._counts_turns = rule, softness, counts_turns
        self._row_of: dict[Cues, int] = {}
        self._probabilities = np.empty((0, INTENTS))

    def intent_probabilities(self, states: Sequence[AgentState]) -> np.ndarray:
        """Probability of each intent, float64 [B, 8]."""
        cues = [read_cues(state, self.reads, self._counts_turns) for state in states]
        rows = [self._row_of.get(c, UNKNOWN) for c in cues]
        if UNKNOWN in rows:
            self._learn(sorted({c for c, row in zip(cues, rows, strict=True) if row == UNKNOWN}))
            rows = [self._row_of[c] for c in cues]
        return self._probabilities[rows]

    def act(self, states: Sequence[AgentState], rng: np.random.Generator) -> ActionBatch:
        """One reply per state, from two draws per state."""
        draws = rng.random((len(states), 2))
        probabilities = self.intent_probabilities(states)
        cumulative = probabilities.cumsum(axis=1)[:, :-1]
        intents = (draws[:, :1] >= cumulative).sum(axis=1)
        variants = (draws[:, 1] * REPLY_COUNTS[intents]).astype(np.int64)
        actions = [REPLIES[i][v] for i, v in zip(intents.tolist(), variants.tolist(), strict=True)]
        chosen = probabilities[np.arange(len(states)), intents]
        return ActionBatch(actions, np.log(chosen) - _LOG_COUNTS[intents])

    def log_prob(self, states: Sequence[AgentState], actions: Sequence[str]) -> np.ndarray:
        """``log p(intent | state) - log(number of its replies)``; -inf for a text it never says."""
        intents = np.array([reply_intent(action) for action in actions], dtype=np.int64)
        chosen = self.intent_probabilities(states)[np.arange(len(states)), intents]
        return np.where(intents < 0, -np.inf, np.log(chosen) - _LOG_COUNTS[intents])

    def _learn(self, cues: list[Cues]) -> None:
        rows = np.full((len(cues), INTENTS), self._softness / INTENTS)
        for row, cue in zip(rows, cues, strict=True):
            weights = self._rule(cue)
            if abs(sum(weights.values()) - 1) > 1e-9:
                raise ValueError(f"{self.name}: the weights for {cue} do not sum to 1: {weights}")
            for intent, weight in weights.items():
                row[intent] += (1 - self._softness) * weight
            self._row_of[cue] = len(self._row_of)
        self._probabilities = np.concatenate([self._probabilities, rows])


def behaviour_policies() -> dict[str, DeskPolicy]:
    """The two policies that write the logs; every intent keeps at least 5 % in every state."""
    return _named(
        DeskPolicy("apprentice", rules.apprentice, softness=0.44),
        DeskPolicy("by_the_book", rules.by_the_book, softness=0.40, reads=1),
    )


def target_policies() -> dict[str, DeskPolicy]:
    """The policies whose value is asked for; none of them wrote a log, the last is a small change of one that did."""
    return _named(
        DeskPolicy("expert", rules.expert, softness=0.03),
        DeskPolicy("adaptive", rules.adaptive),
        DeskPolicy("diagnose_first", rules.diagnose_first, reads=1),
        DeskPolicy("remedy_rusher", rules.remedy_rusher),
        DeskPolicy("empathic", rules.empathic),
        DeskPolicy("cautious_closer", rules.cautious_closer, reads=1),
        DeskPolicy("pushy_upseller", rules.pushy_upseller),
        DeskPolicy("refunder", rules.refunder, reads=1),
        DeskPolicy("fast_fixer", rules.fast_fixer, reads=1),
        DeskPolicy("escalator", rules.escalator, reads=1),
        DeskPolicy("scripted_loop", rules.scripted_loop, reads=0, counts_turns=True),
        DeskPolicy("impatient_closer", rules.impatient_closer, reads=1),
        DeskPolicy("random", rules.random_agent, softness=1.0, reads=0),
        DeskPolicy("apprentice_v2", rules.apprentice, softness=0.20),
    )


def note_takers() -> dict[str, DeskPolicy]:
    """Policies that remember the whole session, for variants in which two turns do not tell enough."""
    return _named(
        DeskPolicy("expert_with_notes", rules.expert, softness=0.03, reads=40),
        DeskPolicy("diagnose_first_with_notes", rules.diagnose_first, reads=40),
    )


def _named(*policies: DeskPolicy) -> dict[str, DeskPolicy]:
    return {policy.name: policy for policy in policies}
