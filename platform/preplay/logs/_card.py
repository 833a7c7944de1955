"""The data card: what is in a set of turns, and what to worry about before trusting it."""

from collections import Counter
from collections.abc import Mapping

import numpy as np
import pyarrow as pa
from pydantic import BaseModel

from preplay.logs._card_stats import LANGUAGE_SAMPLE, TEXTS, session_stats, turn_stats
from preplay.logs._card_warnings import card_warnings
from preplay.logs._checks import check_turns
from preplay.logs._language import dominant_language
from preplay.logs._notes import explain

MANY_SESSIONS = 10
"""Sessions of each kind that the check of lengths needs."""


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
    """Characters of observation, action and next observation."""
    language: str | None
    quarantined: int
    records: dict[str, int]
    formats: dict[str, int]
    """Number of files per format."""
    checks: dict[str, int] = {}
    """Number of turns or sessions per remark and finding (see the warnings)."""
    success_ends_session: float | None = None
    """How well the length alone tells success, where success ends the session (0.5 not at all, 1 entirely)."""
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
    """The card of turns in memory, their checks included; ``seed`` chooses the texts whose language is looked at."""
    found = Counter(notes or {}) + check_turns(turns)
    stats = turn_stats(turns), session_stats(turns, seed)
    return build_card(*stats, quarantined, formats=formats or {}, records=records or {}, notes=found)


def build_card(
    turns: pa.Table,
    sessions: pa.Table,
    quarantined: int,
    *,
    formats: Mapping[str, str],
    records: Mapping[str, int],
    notes: Mapping[str, int],
) -> DataCard:
    """The card from the statistics of turns and sessions (``turn_stats``, ``session_stats``) of all parts."""
    rewards, returns = turns["reward"].to_numpy(), sessions["total"].to_numpy()
    contents = sessions["content"]
    sample = sessions.sort_by("rank").slice(0, LANGUAGE_SAMPLE)["sample"].drop_null().to_pylist()
    card = DataCard(
        sessions=sessions.num_rows,
        turns=turns.num_rows,
        policies=_policies(sessions),
        turns_per_session=Spread.of(sessions["turns"].to_numpy()),
        rewards=Spread.of(rewards),
        returns=Spread.of(returns),
        nonzero_rewards=float(np.mean(rewards != 0)),
        propensities=_propensity_card(turns["logprob"].drop_null().to_numpy(), turns.num_rows),
        duplicate_sessions=sessions.num_rows - len(contents.unique()),
        terminated=int(sessions["terminated"].to_numpy().sum()),
        truncated=sessions.num_rows - int(sessions["terminated"].to_numpy().sum()),
        text_lengths={name: Spread.of(turns[name].to_numpy()) for name in TEXTS},
        language=dominant_language(sample),
        quarantined=quarantined,
        records=dict(records),
        formats=dict(Counter(formats.values())),
        checks={name: count for name, count in notes.items() if count},
        success_ends_session=_length_tells(sessions),
        warnings=[],
    )
    card.warnings = explain(notes, quarantined) + card_warnings(card)
    return card


def _policies(sessions: pa.Table) -> list[PolicyCard]:
    grouped = sessions.group_by("policy").aggregate([("total", "mean"), ("turns", "sum"), ("turns", "count")])
    return [
        PolicyCard(
            policy=g["policy"], sessions=g["turns_count"], turns=g["turns_sum"], mean_return=g["total_mean"]
        )
        for g in grouped.sort_by("policy").to_pylist()
    ]


def _length_tells(sessions: pa.Table) -> float | None:
    """How well a short length alone tells success (area under the curve), where success ends the session.

    Only defined when every successful session stops at its success and others go on: then the outcome leaks
    into the length. None otherwise.
    """
    won = sessions["won_at_end"].to_numpy()
    if (
        won.sum() < MANY_SESSIONS
        or (~won).sum() < MANY_SESSIONS
        or sessions["won_before_end"].to_numpy().any()
    ):
        return None
    from scipy.stats import rankdata  # a second of start-up that reading alone does not need

    ranks = rankdata(-sessions["turns"].to_numpy())
    return float((ranks[won].sum() - won.sum() * (won.sum() + 1) / 2) / (won.sum() * (~won).sum()))


def _propensity_card(logprobs: np.ndarray, turns: int) -> PropensityCard:
    if not len(logprobs):
        return PropensityCard(present=0.0, smallest=None, largest=None, one_value=False)
    low, high = float(np.exp(logprobs.min())), float(np.exp(logprobs.max()))
    one = bool(len(logprobs) > 1 and logprobs.min() == logprobs.max())
    return PropensityCard(present=len(logprobs) / turns, smallest=low, largest=high, one_value=one)
