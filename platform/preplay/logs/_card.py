"""The data card: what is in a set of turns, and what to worry about before trusting it."""

import hashlib
import heapq
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import BaseModel

from preplay.logs._card_warnings import card_warnings
from preplay.logs._language import dominant_language
from preplay.logs._notes import explain
from preplay.seeding import derive_seed

_LANGUAGE_SAMPLE = 200
_TEXTS = ("observation", "action", "next_observation")


class Spread(BaseModel):
    """Smallest, mean, median and largest of some numbers."""

    min: float
    mean: float
    median: float
    max: float

    @classmethod
    def of(cls, values: np.ndarray) -> "Spread":
        """The spread of a non-empty array."""
        return cls(min=values.min(), mean=values.mean(), median=float(np.median(values)), max=values.max())


class PolicyCard(BaseModel):
    """Sessions, turns and mean undiscounted return of one logged policy."""

    policy: str
    sessions: int
    turns: int
    mean_return: float


class PropensityCard(BaseModel):
    """Logged propensities: share of turns that have one, and their range as probabilities."""

    present: float
    smallest: float | None
    largest: float | None
    one_value: bool
    """Every propensity is the same: a constant was logged, not the policy's probability."""


class DataCard(BaseModel):
    """Facts about a dataset of turns; ``warnings`` says in plain words what to worry about."""

    sessions: int
    turns: int
    policies: list[PolicyCard]
    turns_per_session: Spread
    rewards: Spread
    returns: Spread
    nonzero_rewards: float
    """Share of turns with a reward other than 0."""
    propensities: PropensityCard
    duplicate_sessions: int
    """Sessions whose policy, task, observations and actions equal an earlier session's."""
    terminated: int
    truncated: int
    text_lengths: dict[str, Spread]
    """Characters of observation, action and next observation (sampled medians are exact)."""
    language: str | None
    quarantined: int
    records: dict[str, int]
    formats: dict[str, int]
    """Number of files per format."""
    warnings: list[str]


def data_card(
    turns: pa.Table,
    quarantined: int = 0,
    *,
    formats: Mapping[str, str] | None = None,
    records: Mapping[str, int] | None = None,
    notes: Mapping[str, int] | None = None,
    seed: int = 0,
) -> DataCard:
    """The card of turns in memory; ``seed`` chooses the texts whose language is looked at."""
    builder = CardBuilder(seed)
    builder.add(turns)
    return builder.card(quarantined, formats or {}, records or {}, notes or {})


class CardBuilder:
    """Builds a card from tables that hold whole sessions, without keeping their texts."""

    def __init__(self, seed: int = 0):
        self._seed = seed
        self._policies: dict[str, list[tuple[int, float]]] = {}
        self._rewards: list[np.ndarray] = []
        self._lengths: dict[str, list[np.ndarray]] = {name: [] for name in _TEXTS}
        self._logprobs: list[np.ndarray] = []
        self._flags = Counter[str]()
        self._contents: set[bytes] = set()
        self._duplicates = 0
        self._sample: list[tuple[int, str]] = []

    def add(self, turns: pa.Table) -> None:
        """Take in the turns of some sessions, each whole and in order."""
        if not turns.num_rows:
            return
        self._rewards.append(turns["reward"].to_numpy())
        for name in _TEXTS:
            self._lengths[name].append(pc.call_function("utf8_length", [turns[name]]).to_numpy())
        self._logprobs.append(turns["behavior_logprob"].drop_null().to_numpy())
        self._flags.update({name: int(turns[name].to_numpy().sum()) for name in ("terminated", "truncated")})
        starts = np.flatnonzero(turns["turn"].to_numpy() == 0)
        ends = [*starts[1:], turns.num_rows]
        returns = np.add.reduceat(turns["reward"].to_numpy(), starts)
        ids, policies, tasks, *texts = (
            turns[name].to_pylist() for name in ("session_id", "policy", "task", "observation", "action")
        )
        for start, end, total in zip(starts, ends, returns, strict=True):
            self._policies.setdefault(policies[start], []).append((end - start, float(total)))
            first = [policies[start], tasks[start] or ""]
            self._add_content(first + [text for column in texts for text in column[start:end]])
            self._add_sample(ids[start], f"{tasks[start] or ''} {texts[0][start]}")

    def _add_content(self, parts: list[str]) -> None:
        content = hashlib.blake2b("\x1f".join(parts).encode(), digest_size=16).digest()
        self._duplicates += content in self._contents
        self._contents.add(content)

    def _add_sample(self, session_id: str, text: str) -> None:
        """Keep the sessions of the smallest hashes: the same ones in whatever order they come."""
        entry = (-derive_seed(self._seed, "language", session_id), text)
        if len(self._sample) < _LANGUAGE_SAMPLE:
            heapq.heappush(self._sample, entry)
        else:
            heapq.heappushpop(self._sample, entry)

    def card(
        self,
        quarantined: int,
        formats: Mapping[str, str],
        records: Mapping[str, int],
        notes: Mapping[str, int],
    ) -> DataCard:
        """The card of everything taken in."""
        sessions = [s for part in self._policies.values() for s in part]
        rewards = np.concatenate(self._rewards)
        card = DataCard(
            sessions=len(sessions),
            turns=len(rewards),
            policies=[_policy_card(name, part) for name, part in sorted(self._policies.items())],
            turns_per_session=Spread.of(np.array([n for n, _ in sessions])),
            rewards=Spread.of(rewards),
            returns=Spread.of(np.array([total for _, total in sessions])),
            nonzero_rewards=float(np.mean(rewards != 0)),
            propensities=_propensity_card(np.concatenate(self._logprobs), len(rewards)),
            duplicate_sessions=self._duplicates,
            terminated=self._flags["terminated"],
            truncated=self._flags["truncated"],
            text_lengths={name: Spread.of(np.concatenate(part)) for name, part in self._lengths.items()},
            language=dominant_language(text for _, text in sorted(self._sample)),
            quarantined=quarantined,
            records=dict(records),
            formats=dict(Counter(formats.values())),
            warnings=[],
        )
        card.warnings = explain(notes, quarantined) + card_warnings(card)
        return card


def _policy_card(name: str, sessions: Sequence[tuple[int, float]]) -> PolicyCard:
    turns = sum(n for n, _ in sessions)
    mean = float(np.mean([total for _, total in sessions]))
    return PolicyCard(policy=name, sessions=len(sessions), turns=turns, mean_return=mean)


def _propensity_card(logprobs: np.ndarray, turns: int) -> PropensityCard:
    if not len(logprobs):
        return PropensityCard(present=0.0, smallest=None, largest=None, one_value=False)
    low, high = float(np.exp(logprobs.min())), float(np.exp(logprobs.max()))
    one = bool(len(logprobs) > 1 and logprobs.min() == logprobs.max())
    return PropensityCard(present=len(logprobs) / turns, smallest=low, largest=high, one_value=one)
