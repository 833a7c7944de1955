"""Marginalised importance sampling on clustered states: weights of states, not products over turns.

Xie, Ma & Wang 2019. With c_t the cluster of s_t, the target's state distribution follows ``d_{t+1}(c') = Σ_c
d_t(c) P̂_t(c'|c)`` and the value is ``Σ_t γ^t Σ_c d_t(c) r̂_t(c)``, where P̂ and r̂ are averages of logged
turns weighted by the ratio of that one turn. The variance grows with the horizon, not exponentially in it;
the price is a bias when a cluster hides differences that matter.

Shapes: T steps, K clusters.
"""

from dataclasses import dataclass

import numpy as np

from preplay.errors import PreplayError
from preplay.estimators._batch import SessionBatch
from preplay.estimators._bootstrap import resample_terms
from preplay.estimators._logspace import exp_below
from preplay.estimators._protocol import register_own
from preplay.estimators._terms import Terms


@dataclass(frozen=True)
class MarginalStats:
    """Sums over turns of each step and cluster, relative to ``exp(log_scale)``.

    Args:
        n_sessions, n_turns: Sessions and turns behind the sums.
        gamma: Discount per turn.
        log_scale: float64 [T, K], largest log-ratio in the cell; −inf where it is empty.
        start: float64 [K], sessions that start in the cluster.
        mass: float64 [T, K], Σ ρ.
        reward: float64 [T, K], Σ ρ r.
        moves: float64 [T, K, K], Σ ρ over turns followed by a turn in cluster c'.
    """

    n_sessions: int
    n_turns: int
    gamma: float
    log_scale: np.ndarray
    start: np.ndarray
    mass: np.ndarray
    reward: np.ndarray
    moves: np.ndarray

    def __add__(self, other: "MarginalStats") -> "MarginalStats":
        steps, clusters = (max(a, b) for a, b in zip(self.mass.shape, other.mass.shape, strict=True))
        a, b = self._grown(steps, clusters), other._grown(steps, clusters)
        scale = np.maximum(a.log_scale, b.log_scale)
        fa, fb = exp_below(a.log_scale, scale), exp_below(b.log_scale, scale)
        return MarginalStats(
            a.n_sessions + b.n_sessions,
            a.n_turns + b.n_turns,
            a.gamma,
            scale,
            a.start + b.start,
            a.mass * fa + b.mass * fb,
            a.reward * fa + b.reward * fb,
            a.moves * fa[:, :, None] + b.moves * fb[:, :, None],
        )

    def target_states(self) -> np.ndarray:
        """d_t(c), float64 [T, K]; sums to less than 1 once sessions end, NaN where the logs do not reach."""
        shares = np.empty_like(self.mass)
        now = self.start / self.n_sessions
        for t in range(len(shares)):
            shares[t] = now
            lost = (now > 0) & (self.mass[t] == 0)
            now = now @ _ratio(self.moves[t], self.mass[t][:, None])
            if lost.any():
                now = np.full_like(now, np.nan)
        return shares

    def values_to_go(self) -> np.ndarray:
        """V̂_t(c) = r̂_t(c) + γ Σ P̂_t(c'|c) V̂_{t+1}(c'), float64 [T + 1, K]."""
        values = np.zeros((len(self.mass) + 1, self.mass.shape[1]))
        for t in range(len(self.mass) - 1, -1, -1):
            following = self.moves[t] @ values[t + 1]
            values[t] = _ratio(self.reward[t] + self.gamma * following, self.mass[t])
        return values

    def _grown(self, steps: int, clusters: int) -> "MarginalStats":
        t, k = steps - self.mass.shape[0], clusters - self.mass.shape[1]
        return MarginalStats(
            self.n_sessions,
            self.n_turns,
            self.gamma,
            np.pad(self.log_scale, ((0, t), (0, k)), constant_values=-np.inf),
            np.pad(self.start, (0, k)),
            np.pad(self.mass, ((0, t), (0, k))),
            np.pad(self.reward, ((0, t), (0, k))),
            np.pad(self.moves, ((0, t), (0, k), (0, k))),
        )


@dataclass(frozen=True)
class Marginal:
    """The estimator. Resamples and influences are first-order: the estimate is V̂_0 plus weighted residuals."""

    id: str = "mis/1"
    needs: tuple[str, ...] = ("log_ratio", "state_cluster")

    def statistics(self, batch: SessionBatch) -> MarginalStats:
        batch.require(self.id, self.needs)
        assert batch.state_cluster is not None
        assert batch.log_ratio is not None
        clusters = int(batch.state_cluster.max()) + 1
        steps = batch.layout.n_steps
        if steps * clusters**2 > 5e7:
            raise PreplayError(
                f"{steps} steps × {clusters}² cluster moves are too many to hold.",
                fix="Use fewer state clusters.",
            )
        cell = _cell(batch, clusters)
        scale = np.full(steps * clusters, -np.inf)
        np.maximum.at(scale, cell, batch.log_ratio)
        ratio = exp_below(batch.log_ratio, scale[cell])
        inside = np.ones(batch.n_turns, bool)
        inside[batch.offsets[1:] - 1] = False
        at = np.flatnonzero(inside)
        move = cell[at] * clusters + batch.state_cluster[at + 1]
        shape = (steps, clusters)
        return MarginalStats(
            batch.n_sessions,
            batch.n_turns,
            batch.gamma,
            scale.reshape(shape),
            np.bincount(batch.state_cluster[batch.offsets[:-1]], minlength=clusters).astype(np.float64),
            np.bincount(cell, ratio, steps * clusters).reshape(shape),
            np.bincount(cell, ratio * batch.full_reward, steps * clusters).reshape(shape),
            np.bincount(move, ratio[at], steps * clusters**2).reshape(*shape, clusters),
        )

    def value(self, stats: MarginalStats) -> float:
        discounts = stats.gamma ** np.arange(len(stats.mass))
        states = stats.target_states()
        return float((discounts[:, None] * states * _ratio(stats.reward, stats.mass)).sum())

    def terms(self, batch: SessionBatch) -> Terms:
        """``V̂_0(c_0) + Σ γ^t w_t (r_t + γ V̂_{t+1}(c_{t+1}) − V̂_t(c_t))``: its mean is the estimate."""
        stats = self.statistics(batch)
        assert batch.state_cluster is not None
        values, turn = stats.values_to_go(), _turn(batch)
        now = values[turn, batch.state_cluster]
        following = np.append(values[turn[1:], batch.state_cluster[1:]], 0.0)
        following[batch.offsets[1:] - 1] = 0.0
        residual = batch.full_reward + batch.gamma * following - now
        weight = batch.layout.by_step(marginal_log_weight(batch, stats))
        x = batch.layout.by_step(residual)
        first = now[batch.offsets[:-1]]
        return Terms(batch.layout, weight, x, batch.discounts, first, "count", batch.n_turns)

    def resampled(self, batch: SessionBatch, resamples: int, seed: int) -> np.ndarray:
        return resample_terms(self.terms(batch), resamples, seed)

    def influence(self, batch: SessionBatch) -> np.ndarray:
        values = self.terms(batch).session_values()
        return values - values.mean()


def marginal_log_weight(batch: SessionBatch, stats: MarginalStats) -> np.ndarray:
    """log of d_t(c)/d^b_t(c) times the turn's ratio, normalised in its cell; float64 [R] in session order."""
    assert batch.log_ratio is not None
    cell = _cell(batch, stats.mass.shape[1])
    with np.errstate(divide="ignore", invalid="ignore"):
        per_cell = (
            np.log(stats.target_states()) - np.log(stats.mass) - stats.log_scale + np.log(stats.n_sessions)
        )
    return batch.log_ratio + per_cell.ravel()[cell]


def _turn(batch: SessionBatch) -> np.ndarray:
    return np.arange(batch.n_turns) - np.repeat(batch.offsets[:-1], batch.lengths)


def _cell(batch: SessionBatch, clusters: int) -> np.ndarray:
    assert batch.state_cluster is not None
    return _turn(batch) * clusters + batch.state_cluster


def _ratio(top: np.ndarray, bottom: np.ndarray) -> np.ndarray:
    return np.divide(
        top, bottom, out=np.zeros(np.broadcast_shapes(top.shape, bottom.shape)), where=bottom > 0
    )


register_own(Marginal())
