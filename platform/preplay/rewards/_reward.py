"""Terms put together: the reward of an action, by term, and goals that weigh the terms by context."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from preplay.errors import PreplayError
from preplay.rewards._outcome import ActionOutcome
from preplay.rewards._terms import DEFAULT_TERMS, Term


@dataclass(frozen=True)
class RewardBreakdown:
    """Rewards of B actions: ``total`` float64 [B], ``terms`` weighted float64 [B] each, ``terminated`` bool [B]."""

    total: np.ndarray
    terms: dict[str, np.ndarray]
    terminated: np.ndarray


@dataclass(frozen=True)
class RewardFunction:
    """The sum of weighted terms.

    Example::

        reward = RewardFunction().with_weights({"style": 0.0})
        reward([ActionOutcome("def f(): return 1", 2, 2, solved=True)]).total
    """

    terms: tuple[Term, ...] = DEFAULT_TERMS

    def __post_init__(self):
        names = [term.name for term in self.terms]
        if len(set(names)) != len(names):
            raise ValueError(f"two terms share a name: {names}")

    def __call__(self, outcomes: Sequence[ActionOutcome]) -> RewardBreakdown:
        """Measure all terms on a batch."""
        total, ended = np.zeros(len(outcomes)), np.zeros(len(outcomes), bool)
        terms: dict[str, np.ndarray] = {}
        for term in self.terms:
            measured = term.measure(outcomes)
            terms[term.name] = term.weight * measured
            total = total + terms[term.name]
            ended |= term.terminal & (measured > 0)
        return RewardBreakdown(total, terms, ended)

    def with_weights(self, weights: Mapping[str, float]) -> "RewardFunction":
        """The same terms with other weights; names that are not among the terms are refused."""
        known = {term.name for term in self.terms}
        if unknown := sorted(set(weights) - known):
            raise PreplayError(
                f"there is no reward term {unknown[0]!r}.", fix=f"Terms: {', '.join(sorted(known))}."
            )
        return RewardFunction(tuple(t.weighted(weights.get(t.name, t.weight)) for t in self.terms))
