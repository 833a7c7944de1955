"""Fitted Q evaluation of a stochastic target policy on feature vectors (Le, Voloshin & Yue 2019).

Each iteration regresses Q(s, a) on r + γ Σ_k p_k Q⁻(s', a'_k) with a'_k drawn from the target policy, Q⁻ a
frozen average of the last iteration. Members see their own fixed resample of the sessions and their own
targets.

Shapes: R turns, S sessions, K sampled actions, M members, DS and DA state and action features.
"""

from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass

import numpy as np
import torch

from preplay.errors import PreplayError
from preplay.estimators._fqe_config import FQEConfig
from preplay.estimators._fqe_inputs import FQEInputs
from preplay.estimators._fqe_model import FQEModel, join_features
from preplay.estimators._fqe_net import EnsembleMLP, Standardiser
from preplay.seeding import numpy_rng, torch_generator


@dataclass(frozen=True)
class Convergence:
    """Whether the iteration settled.

    Args:
        trace: Mean next-state value after each iteration, float64 [iterations].
        drift: Change over the last quarter of the iterations, in spreads of the targets.
        bellman_r2: Share of the targets' variance that Q explains on held-out sessions.
        converged: Small drift, and no value pressed against its possible range.
        reason: One sentence.
    """

    trace: np.ndarray
    drift: float
    bellman_r2: float | None
    converged: bool
    reason: str


@dataclass(frozen=True)
class FQEResult:
    """Fitted values of the logged turns, and the function behind them.

    Args:
        q: float64 [R], Q̂(s_t, a_t).
        q_members: float64 [M, R].
        next_v: float64 [R], V̂(s_{t+1}); 0 where nothing follows.
        v: float64 [R], V̂(s_t); None without ``start_action_features``.
        v_start_members: float64 [M, S], V̂(s_0) per member; None without ``start_action_features``.
        bootstrap: float64 [S], V̂ after the last turn.
    """

    q: np.ndarray
    q_members: np.ndarray
    next_v: np.ndarray
    v: np.ndarray | None
    v_start_members: np.ndarray | None
    bootstrap: np.ndarray
    model: FQEModel
    convergence: Convergence


def fit_fqe(inputs: FQEInputs, config: FQEConfig | None = None, *, seed: int = 0) -> FQEResult:
    """Fit Q of the target policy on logged turns."""
    config = config or FQEConfig()
    with _one_thread():
        fit = _Fit(inputs, config, seed)
        trace = np.array([fit.iterate(i) for i in range(fit.iterations)])
        return _result(inputs, fit, trace)


class _Fit:
    """The state of the iteration: networks, their running average, targets."""

    def __init__(self, inputs: FQEInputs, config: FQEConfig, seed: int):
        self.inputs, self.config, self.seed = inputs, config, seed
        longest = int(np.diff(inputs.offsets).max())
        self.iterations = config.iterations or min(longest + 3, 60)
        turn_scale = float(inputs.horizon or longest) if config.use_turn else None
        rows = join_features(inputs.state_features, inputs.action_features, inputs.turn, turn_scale)
        self.train_rows, self.held_rows, resamples = _split(inputs.offsets, config, seed)
        scaler = Standardiser.fit(rows[self.train_rows])
        self.rows = torch.from_numpy(scaler.apply(rows))
        self.resamples = resamples
        net = EnsembleMLP(config.members, rows.shape[1], config.hidden, torch_generator(seed, "fqe"))
        self.net = net
        mean, scale, bounds = _target_range(inputs, self.train_rows)
        self.model = FQEModel(deepcopy(net), scaler, mean, scale, bounds, turn_scale)
        self.follows = np.flatnonzero(inputs.follows)
        self.optimiser = torch.optim.Adam(
            net.parameters(), config.learning_rate, weight_decay=config.weight_decay
        )
        self.targets = np.empty((config.members, len(rows)))

    def next_values(self) -> np.ndarray:
        """V̂(s') per member, 0 where nothing follows; float64 [M, R]."""
        data, f = self.inputs, self.follows
        weights = None if data.next_action_weights is None else data.next_action_weights[f]
        values = np.zeros((self.config.members, len(data.reward)))
        values[:, f] = self.model.v_members(
            data.next_state_features[f], data.next_action_features[f], data.turn[f] + 1, weights
        )
        return values

    def iterate(self, iteration: int) -> float:
        """One regression; the mean next-state value it started from."""
        following = self.next_values() if iteration else np.zeros_like(self.targets)
        self.targets = (self.inputs.reward + self.inputs.gamma * following).clip(*self.model.bounds)
        scaled = torch.from_numpy(
            ((self.targets - self.model.target_mean) / self.model.target_scale).astype(np.float32)
        )
        rng = numpy_rng(self.seed, "fqe", iteration)
        rate = self.config.learning_rate * (1 - 0.9 * iteration / self.iterations)
        for group in self.optimiser.param_groups:
            group["lr"] = rate
        for step in range(self.config.steps):
            picks = rng.integers(0, self.resamples.shape[1], (self.config.members, self.config.batch_size))
            self._step(np.take_along_axis(self.resamples, picks, 1), scaled, step)
        return float(following.mean())

    def _step(self, rows: np.ndarray, targets: torch.Tensor, step: int) -> None:
        index = torch.from_numpy(rows)
        loss = (self.net(self.rows[index]) - targets.gather(1, index)).square().mean(1).sum()
        if not torch.isfinite(loss):
            raise PreplayError(
                "fitted Q evaluation diverged: the loss is not a number.", fix="Check the rewards."
            )
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()
        self.optimiser.step()
        decay = min(0.98, step / (step + 10))
        with torch.no_grad():
            for mean, new in zip(self.model.net.parameters(), self.net.parameters(), strict=True):
                mean.lerp_(new, 1 - decay)


def _result(inputs: FQEInputs, fit: _Fit, trace: np.ndarray) -> FQEResult:
    model = fit.model
    q = model.q_members(inputs.state_features, inputs.action_features, inputs.turn)
    following = fit.next_values()
    trace = np.append(trace, following.mean())
    v, start = None, None
    if inputs.start_action_features is not None:
        first = inputs.offsets[:-1]
        zeros = np.zeros(len(first))
        start = model.v_members(
            inputs.state_features[first], inputs.start_action_features, zeros, inputs.start_action_weights
        )
        v = np.append(0.0, following.mean(0)[:-1])
        v[first] = start.mean(0)
    bootstrap = following.mean(0)[inputs.offsets[1:] - 1]
    state = _diagnose(fit, q, trace)
    return FQEResult(q.mean(0), q, following.mean(0), v, start, bootstrap, model, state)


def _diagnose(fit: _Fit, q: np.ndarray, trace: np.ndarray) -> Convergence:
    low, high = fit.model.bounds
    quarter = max(len(trace) // 4, 1)
    drift = float(abs(trace[-1] - trace[-1 - quarter]) / fit.model.target_scale)
    pressed = float(((q <= low) | (q >= high)).mean())
    r2 = None
    if len(fit.held_rows):
        targets = fit.targets[:, fit.held_rows]
        r2 = float(1 - np.mean((targets - q[:, fit.held_rows]) ** 2) / max(targets.var(), 1e-12))
    if pressed > 0.2:
        return Convergence(
            trace, drift, r2, False, f"{pressed:.0%} of the values stand at the end of their range."
        )
    if drift > 0.05:
        return Convergence(trace, drift, r2, False, f"Values still moved by {drift:.2f} spreads at the end.")
    return Convergence(trace, drift, r2, True, f"Values moved by {drift:.3f} spreads at the end.")


def _split(offsets: np.ndarray, config: FQEConfig, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Training rows, held-out rows, and each member's resample of the training sessions as rows [M, N]."""
    n = len(offsets) - 1
    rng = numpy_rng(seed, "fqe", "sessions")
    shuffled = rng.permutation(n)
    held = shuffled[: int(n * config.held_out)] if n >= 20 else shuffled[:0]
    train = np.setdiff1d(np.arange(n), held)
    rows = [_rows(offsets, train[rng.integers(0, len(train), len(train))]) for _ in range(config.members)]
    shortest = min(map(len, rows))
    resamples = np.stack([rng.permutation(r)[:shortest] for r in rows])
    return _rows(offsets, train), _rows(offsets, held), resamples


def _rows(offsets: np.ndarray, sessions: np.ndarray) -> np.ndarray:
    pieces = [np.arange(int(offsets[i]), int(offsets[i + 1])) for i in sessions]
    return np.concatenate([np.zeros(0, np.int64), *pieces])


def _target_range(inputs: FQEInputs, rows: np.ndarray) -> tuple[float, float, tuple[float, float]]:
    """Centre and spread of logged returns, and the range no value can leave."""
    reward, gamma = inputs.reward, inputs.gamma
    returns = np.zeros(len(reward))
    follows, last = inputs.follows, np.zeros(len(reward), bool)
    last[inputs.offsets[1:] - 1] = True
    for t in range(len(reward) - 1, -1, -1):
        returns[t] = reward[t] + (gamma * returns[t + 1] if follows[t] and not last[t] else 0.0)
    horizon = inputs.horizon or int(np.diff(inputs.offsets).max()) * (5 if inputs.truncated.any() else 1)
    length = float(np.sum(gamma ** np.arange(horizon)))
    if gamma < 1 and inputs.horizon is None:
        length = 1 / (1 - gamma)
    bounds = (min(reward.min(), 0.0) * length, max(reward.max(), 0.0) * length)
    spread = float(returns[rows].std())
    return float(returns[rows].mean()), spread if spread > 1e-8 else 1.0, bounds


@contextmanager
def _one_thread():
    """More threads make small products slower."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
