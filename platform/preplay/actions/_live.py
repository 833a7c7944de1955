"""Features of actions in sessions that nobody logged: what the logs' features would be, had they gone this way.

B sessions, T earlier turns, M mentions of terms.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from preplay.actions._blocks import Columns, all_known, is_good, make_blocks, state_block, tool_block
from preplay.actions._grounding import Grounder
from preplay.actions._knowledge import build_knowledge
from preplay.actions._outcomes import OTHER, OutcomeClass, OutcomeClassifier, rejected_names
from preplay.actions._registry import PLAIN, adapters
from preplay.actions._structure import (
    names_of,
    parser,
    skeleton_of,
    structure,
    values_of,
)
from preplay.actions._terms import terms
from preplay.actions._texts import STRIDE, Action, Observation, Texts, first_rows, terms_of, within
from preplay.actions._types import STATUSES


@dataclass(frozen=True)
class Past:
    """Where B sessions stand, as numbers of a :class:`SessionReader`.

    Args:
        turn, question, environment: int64 [B].
        policy: int64 [B] the logged policy that acts, whose sessions show it nothing new; -1 for any other.
        action, observation: int64 [B, T] earlier actions and what followed each, oldest first; -1 before the start.
    """

    turn: np.ndarray
    question: np.ndarray
    environment: np.ndarray
    policy: np.ndarray
    action: np.ndarray
    observation: np.ndarray

    def then(self, action: np.ndarray, observation: np.ndarray) -> "Past":
        """One turn later, int64 [B] each."""
        return replace(
            self,
            turn=self.turn + 1,
            action=np.column_stack([self.action, action]),
            observation=np.column_stack([self.observation, observation]),
        )

    def select(self, rows: np.ndarray) -> "Past":
        """The given sessions."""
        return Past(*(value[rows] for value in vars(self).values()))


class SessionReader:
    """Features of logged turns, and of actions in sessions that begin like logged ones and go another way.

    Args:
        turns: Rows of ``TURN_SCHEMA``: what is known of environments is pooled from them.
        columns: Of the logs that a model learned from; by default those of ``turns``.
    """

    def __init__(self, turns: pa.Table, columns: Columns | None = None):
        made = structure(turns)
        self.turns, self.columns = made, columns or Columns.of(made)
        self._knowledge = build_knowledge(made)
        self._terms = {term: i for i, term in enumerate(made.vocabulary)}
        self._task = np.unique(made.question[made.turn == 0][made.task.row] * STRIDE + made.task.term)
        self._codes = [
            {name: i for i, name in enumerate(names)} for names in (made.canonicals, made.skeletons)
        ]
        self._parse = parser(made.families)
        rules = [r for name in made.families.shares if name != PLAIN for r in adapters()[name].outcome_rules]
        self._classifier = OutcomeClassifier(rules)
        acted, followed = turns["action"].to_pylist(), turns["next_observation"].to_pylist()
        self._actions = Texts(acted, self._logged_actions(first_rows(acted)), self._read_action)
        self._observations = Texts(
            followed, self._logged_observations(first_rows(followed)), self._read_observation
        )

    @property
    def logged_action(self) -> np.ndarray:
        """int64 [R] numbers of the logged actions."""
        return self._actions.logged

    def logged(self) -> np.ndarray:
        """float64 [R, ·] of every logged action; its own policy never vouches for it."""
        grounding = Grounder(self.turns, self._knowledge)()
        return make_blocks(self.turns, self.columns).with_grounding(grounding)

    def begin(self, rows: np.ndarray, *, same_policy: bool = False) -> Past:
        """The states before the logged turns ``rows`` int64 [B], where the logged or another policy acts now."""
        turn, policy = (
            self.turns.turn[rows],
            self.turns.policy[rows] if same_policy else np.full(len(rows), -1),
        )
        before = rows[:, None] - np.arange(int(turn.max(initial=0)), 0, -1)
        there = before >= (rows - turn)[:, None]
        action, seen = (
            np.where(there, numbers[before], -1)
            for numbers in (self._actions.logged, self._observations.logged)
        )
        return Past(turn, self.turns.question[rows], self.turns.environment[rows], policy, action, seen)

    def actions(self, texts: Sequence[str]) -> np.ndarray:
        """Numbers of actions, int64 [N]; new ones are taken apart."""
        return self._actions.numbers(texts)

    def observations(self, texts: Sequence[str]) -> np.ndarray:
        """Numbers of observations, int64 [N]."""
        return self._observations.numbers(texts)

    def features(self, past: Past, action: np.ndarray, *, without: tuple[str, ...] = ()) -> np.ndarray:
        """float64 [B, ·] of actions int64 [B] in these states; nothing of the policies in ``without`` is known."""
        names, values = (self._shares(kind, past, action, without) for kind in ("names", "values"))
        repeats = [self._repeats(kind, past, action) for kind in ("exact", "skeleton")]
        grounding = np.column_stack([*names[:7], *values[:5], *repeats, past.turn]).astype(np.float64)
        called = self._actions.column("block")[action]
        return np.column_stack([self._state(past), called, grounding, all_known(grounding)])

    def _state(self, past: Past) -> np.ndarray:
        seen, there = self._observations, past.observation >= 0
        last = past.observation[:, -1] if past.observation.shape[1] else np.full(len(past.turn), -1)
        before = np.where((last >= 0)[:, None], seen.column("outcome")[last], 0.0)
        counts = [(seen.column(kind)[past.observation] * there).sum(1) for kind in ("good", "error")]
        tools = (self._actions.column("bag")[past.action] * there[..., None]).sum(1)
        facts = (seen.relation("facts").size[past.observation] * there).sum(1)
        return state_block(past.turn, before, np.column_stack([*counts, tools, facts]))

    def _shares(
        self, kind: str, past: Past, action: np.ndarray, without: tuple[str, ...]
    ) -> list[np.ndarray]:
        """As the grounding of logged turns: number of mentions, and the shares of where they are known from."""
        row, term = self._actions.relation(kind).of(action)
        environment = past.environment[row]
        known = (environment >= 0) & (term < len(self.turns.vocabulary))
        place = np.where(known, environment * len(self.turns.vocabulary) + term, -1)
        gone = np.flatnonzero(np.isin(self.turns.policies, without))
        own = past.policy[row]
        base, refused = (
            self._knowledge.kinds[facts].find(place, own).count(gone) > 0 for facts in ("shown", "refused")
        )
        seen, here = self._seen(past, row, term)
        task = within(self._task, past.question[row] * STRIDE + term)
        count = np.bincount(row, minlength=len(action)).astype(np.float64)
        sources = (task, seen, base, ~(seen | base), here & ~seen, here | refused & ~base)
        return [count, *(np.bincount(row, s, len(action)) / np.maximum(count, 1) for s in sources)]

    def _seen(self, past: Past, row: np.ndarray, term: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """bool [M] each: whether the session was shown the term, or used it with success; whether it was refused."""
        seen, refused = np.zeros(len(row), bool), np.zeros(len(row), bool)
        names, values = (self._actions.relation(kind) for kind in ("names", "values"))
        facts, rejected = (self._observations.relation(kind) for kind in ("facts", "rejected"))
        error = self._observations.column("error")
        for action, observation in zip(past.action.T, past.observation.T, strict=True):
            acted, followed = action[row], observation[row]
            used = names.holds(acted, term) | values.holds(acted, term)
            seen |= facts.holds(followed, term) | used & ~error[followed]
            refused |= rejected.holds(followed, term)
        return seen, refused

    def _repeats(self, kind: str, past: Past, action: np.ndarray) -> np.ndarray:
        code = self._actions.column(kind)
        return ((code[past.action] == code[action][:, None]) & (past.action >= 0)).any(1)

    def _logged_actions(self, rows: np.ndarray) -> list[Action]:
        made = self.turns
        names, values = terms_of(made.names, rows), terms_of(made.values, rows)
        bag = self.columns.tool_bag(made.tools)[made.tool[rows]]
        sizes = (np.array([len(held) for held in kind]) for kind in (names, values))
        block = tool_block(bag, made.status[rows], made.calls[rows], *sizes)
        codes = made.exact[rows].tolist(), made.skeleton[rows].tolist()
        return list(map(Action, names, values, bag, block, *codes))

    def _read_action(self, text: str) -> Action:
        parsed = self._parse(text)
        names, values = self._number(names_of(parsed)), self._number(values_of(parsed))
        bag = self.columns.tool_bag([parsed.tool])
        numbers = STATUSES.index(parsed.status), len(parsed.calls), len(names), len(values)
        block = tool_block(bag, *(np.array([n]) for n in numbers))
        exact, skeleton = (
            codes.setdefault(name, len(codes))
            for codes, name in zip(self._codes, (parsed.canonical, skeleton_of(parsed)), strict=True)
        )
        return Action(names, values, bag[0], block[0], exact, skeleton)

    def _logged_observations(self, rows: np.ndarray) -> list[Observation]:
        made = self.turns
        outcome = self.columns.outcome(made.outcomes)[made.outcome[rows]]
        good, error = is_good(made.outcomes)[made.outcome[rows]].tolist(), made.error[rows].tolist()
        facts, rejected = terms_of(made.facts, rows), terms_of(made.rejected, rows)
        return list(map(Observation, facts, rejected, outcome, good, error))

    def _read_observation(self, text: str) -> Observation:
        """What no logged turn showed is judged by rule alone."""
        shown = self.turns.harness.strip(text)
        found = self._classifier.by_rule(shown) or OutcomeClass(OTHER)
        error = found.outcome.startswith("error")
        return Observation(
            self._number([] if error else terms(shown)),
            self._number(rejected_names(found)),
            self.columns.outcome([found.outcome])[0],
            bool(is_good([found.outcome])[0]),
            error,
        )

    def _number(self, words: Sequence[str]) -> np.ndarray:
        """Numbers of distinct terms, int64; new ones get the next."""
        return np.array([self._terms.setdefault(w, len(self._terms)) for w in dict.fromkeys(words)], np.int64)
