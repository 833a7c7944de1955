"""Estimators that are sums over steps: importance sampling, direct method, doubly robust.

Notation: ρ_t = π_e(a_t|s_t)/π_b(a_t|s_t), w_t = ρ_0 ⋯ ρ_t, n sessions, G the discounted return. Sessions that
were cut carry γ·V̂ of their last state in their last reward where the batch has ``bootstrap``.
"""

from dataclasses import dataclass

import numpy as np

from preplay.estimators._batch import SessionBatch
from preplay.estimators._bootstrap import resample_terms
from preplay.estimators._influence import influence_of_terms
from preplay.estimators._layout import Layout
from preplay.estimators._protocol import register_own
from preplay.estimators._terms import Normaliser, Stats, Terms


@dataclass(frozen=True)
class TermsEstimator:
    """Common machinery: a subclass says what the terms of a batch are."""

    id: str
    needs: tuple[str, ...]

    def terms(self, batch: SessionBatch) -> Terms:
        """Terms of each session (see ``Terms``)."""
        batch.require(self.id, self.needs)
        return self._terms(batch)

    def _terms(self, batch: SessionBatch) -> Terms:
        raise TypeError(f"{type(self).__name__} must define its terms")

    def statistics(self, batch: SessionBatch) -> Stats:
        return self.terms(batch).stats

    def value(self, stats: Stats) -> float:
        return stats.value()

    def resampled(self, batch: SessionBatch, resamples: int, seed: int) -> np.ndarray:
        return resample_terms(self.terms(batch), resamples, seed)

    def influence(self, batch: SessionBatch) -> np.ndarray:
        return influence_of_terms(self.terms(batch))


@dataclass(frozen=True)
class Mean(TermsEstimator):
    """Mean return of the logged sessions: the value of the logging policy, (1/n) Σ G_i."""

    def _terms(self, batch: SessionBatch) -> Terms:
        return _baseline(batch, batch.returns)


@dataclass(frozen=True)
class DirectMethod(TermsEstimator):
    """Mean of V̂ at the first turn. As biased as V̂, and precise about it."""

    def _terms(self, batch: SessionBatch) -> Terms:
        assert batch.v is not None
        return _baseline(batch, batch.v[batch.offsets[:-1]])


@dataclass(frozen=True)
class TrajectoryWeighted(TermsEstimator):
    """One weight per session: IS (1/n) Σ w_T G, or WIS Σ w_T G / Σ w_T."""

    normaliser: Normaliser

    def _terms(self, batch: SessionBatch) -> Terms:
        layout = Layout.single_step(batch.layout)
        assert batch.log_ratio is not None
        weight = batch.layout.cumulate(batch.log_ratio)[batch.layout.last_rows]
        returns = batch.returns[layout.order]
        return Terms(
            layout, weight, returns, np.ones(1), np.zeros(batch.n_sessions), self.normaliser, batch.n_turns
        )


@dataclass(frozen=True)
class StepWeighted(TermsEstimator):
    """One weight per turn: PDIS (1/n) Σ γ^t w_t r_t, or weighted PDIS with w_t over Σ w_t of all sessions.

    With ratios of action clusters in place of actions (``needs`` names the array) it is MIPS (Saito &
    Joachims 2022).
    """

    normaliser: Normaliser

    def _terms(self, batch: SessionBatch) -> Terms:
        ratio = getattr(batch, self.needs[0])
        x = batch.layout.by_step(batch.full_reward)
        return _stepwise(batch, ratio, x, np.zeros(batch.n_sessions), self.normaliser)


@dataclass(frozen=True)
class DoublyRobust(TermsEstimator):
    """DR: mean V̂(s_0) + Σ γ^t w_t (r_t + γ V̂(s_{t+1}) − Q̂(s_t, a_t)); WDR with normalised weights.

    Jiang & Li 2016; Thomas & Brunskill 2016. V̂ after the end is 0, after a cut the bootstrap value.
    """

    normaliser: Normaliser

    def _terms(self, batch: SessionBatch) -> Terms:
        assert batch.v is not None
        assert batch.log_ratio is not None
        x = batch.layout.by_step(temporal_differences(batch))
        return _stepwise(batch, batch.log_ratio, x, batch.v[batch.offsets[:-1]], self.normaliser)


def temporal_differences(batch: SessionBatch) -> np.ndarray:
    """r_t + γ V̂(s_{t+1}) − Q̂(s_t, a_t), float64 [R] in session order."""
    assert batch.v is not None
    assert batch.q is not None
    following = np.append(batch.v[1:], 0.0)
    following[batch.offsets[1:] - 1] = batch.value_after_end
    return batch.reward + batch.gamma * following - batch.q


def _stepwise(
    batch: SessionBatch, ratio: np.ndarray, x: np.ndarray, base: np.ndarray, normaliser: Normaliser
) -> Terms:
    weight = batch.layout.cumulate(ratio)
    return Terms(batch.layout, weight, x, batch.discounts, base, normaliser, batch.n_turns)


def _baseline(batch: SessionBatch, base: np.ndarray) -> Terms:
    layout = Layout.single_step(batch.layout)
    zero = np.zeros(batch.n_sessions)
    return Terms(layout, zero, zero, np.ones(1), base, "count", batch.n_turns)


register_own(Mean("mean/1", ()))
register_own(DirectMethod("dm/1", ("v",)))
register_own(TrajectoryWeighted("is/1", ("log_ratio",), "count"))
register_own(TrajectoryWeighted("wis/1", ("log_ratio",), "weights"))
register_own(StepWeighted("pdis/1", ("log_ratio",), "count"))
register_own(StepWeighted("wpdis/1", ("log_ratio",), "weights"))
register_own(DoublyRobust("dr/1", ("log_ratio", "q", "v"), "count"))
register_own(DoublyRobust("wdr/1", ("log_ratio", "q", "v"), "weights"))
register_own(StepWeighted("mips/1", ("log_cluster_ratio",), "count"))
register_own(StepWeighted("wmips/1", ("log_cluster_ratio",), "weights"))
