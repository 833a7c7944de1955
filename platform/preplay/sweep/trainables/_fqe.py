"""Sweeps of fitted Q evaluation: an estimator's own settings, chosen without any truth.

Q of the policies that wrote the logs can be checked: on sessions that the fit has not seen, Q(s_t, a_t) is the mean
of the return from t on. The squared error to those returns (``q_error``) is a proper score of Q, but it rewards
smoothness on states that the logs visit often; the mean value of each logging policy (``value_error``) is what an
estimate of another policy is like. On ten random settings and 300 support-desk sessions the rank correlation with the
true error of eight unseen policies was -0.73 for the first and 0.54 for the second, so that the second one chooses.

R turns, S sessions, DS and DA state and action features.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np

from preplay.embedding import EmbeddedTurns
from preplay.estimators import FQEConfig, FQEInputs, fit_fqe
from preplay.pipeline import ValueFeatures, value_features
from preplay.seeding import numpy_rng
from preplay.sweep._config import DataConfig
from preplay.sweep._members import Product, publish_settings
from preplay.sweep._trainable import Job, Outcome, Prepared
from preplay.sweep.trainables._desk_data import embedded_data
from preplay.world_model import TrainedModel, WorldModelConfig, train_world_model


@dataclass(frozen=True)
class Shared:
    """Logged turns as features, and the fold of each session.

    Args:
        offsets: int64 [S + 1]; reward, return_to_go: float64 [R]; terminated, truncated: bool [R].
        fold, policy: int64 [S].
    """

    features: ValueFeatures
    offsets: np.ndarray
    reward: np.ndarray
    return_to_go: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray
    fold: np.ndarray
    policy: np.ndarray
    gamma: float
    horizon: int


class FqeTrainable:
    """Fitted Q evaluation; the configuration is :class:`preplay.estimators.FQEConfig`.

    Metrics, cross-fitted over sessions: ``q_error`` (root mean square of Q minus the return from that turn on, in
    standard deviations of the returns), ``value_error`` (the largest difference of predicted and logged value among
    the logging policies, same unit), ``drift`` (how far values still move at the end of the fit).
    """

    name = "fqe"
    config = FQEConfig
    fixed = ()
    needs_data = True
    place = "evaluation.fqe"
    continues = False
    metrics: ClassVar[dict[str, Literal["min", "max"]]] = dict.fromkeys(
        ("q_error", "value_error", "drift"), "min"
    )

    def prepare(self, data: DataConfig, folder: Path, seed: int, cache: Path) -> Prepared:
        """See :class:`preplay.sweep.Trainable`."""
        embedded, _, inputs = embedded_data(data, folder, cache)
        return Prepared(fqe_data(embedded, feature_model(embedded, seed), data.folds, seed), inputs)

    def run(self, job: Job) -> Iterator[Outcome]:
        """See :class:`preplay.sweep.Trainable`."""
        for share in job.shares:
            steps = max(1, round(job.config.steps * share))
            yield on_policy_check(job.shared, job.config.model_copy(update={"steps": steps}), seed=job.seed)

    def ensemble_loss(self, shared: Shared, prediction: np.ndarray) -> float:
        """``q_error`` of averaged values."""
        return _q_error(prediction, shared)

    def publish(self, product: Product, target: Path | str) -> dict[str, Any]:
        """The chosen settings: FQE is fitted to one target policy at a time, and its members are its own."""
        return publish_settings(product, target, self.place)


def feature_model(data: EmbeddedTurns, seed: int) -> TrainedModel:
    """A small world model of the same logs: FQE reads its features."""
    return train_world_model(data, WorldModelConfig(dynamics="knn"), seed=seed)


def fqe_data(data: EmbeddedTurns, trained: TrainedModel, folds: int, seed: int) -> Shared:
    """Logged turns in the features of a world model, and folds of whole sessions."""
    turns, starts = trained.turns, data.session_starts
    sessions = len(starts) - 1
    return Shared(
        features=value_features(trained.model, data, turns),
        offsets=starts,
        reward=turns.reward,
        return_to_go=turns.return_to_go,
        terminated=turns.terminated,
        truncated=data.turns["truncated"].to_numpy(zero_copy_only=False),
        fold=numpy_rng(seed, "folds").permutation(sessions) % folds,
        policy=np.unique(data.session_policy.astype(str), return_inverse=True)[1],
        gamma=trained.model.config.gamma,
        horizon=trained.model.horizon,
    )


def on_policy_check(shared: Shared, config: FQEConfig, *, seed: int) -> Outcome:
    """Fit the logging policies' own Q on all folds but one, and compare it with the returns in that one."""
    lengths = np.diff(shared.offsets)
    predicted, drifts = np.zeros(len(shared.reward)), []
    for number in np.unique(shared.fold):
        inside = np.repeat(shared.fold == number, lengths)
        fitted = fit_fqe(_inputs(shared, ~inside), config, seed=seed)
        turn = np.arange(len(inside)) - np.repeat(shared.offsets[:-1], lengths)
        features = shared.features
        predicted[inside] = fitted.model.q(features.state[inside], features.action[inside], turn[inside])
        drifts.append(fitted.convergence.drift)
    metrics = {
        "q_error": _q_error(predicted, shared),
        "value_error": _value_error(predicted, shared),
        "drift": float(np.mean(drifts)),
    }
    return Outcome(metrics, predicted)


def _inputs(shared: Shared, keep: np.ndarray) -> FQEInputs:
    """The kept sessions, each turn followed by what the log did next."""
    lengths = np.diff(shared.offsets)
    kept = keep[shared.offsets[:-1]]
    # The action after a session's last turn is unknown; nothing follows there unless it was cut, and then the
    # horizon, which is in the state, has come.
    after = np.append(np.arange(1, len(keep)), len(keep) - 1)
    last = np.zeros(len(keep), bool)
    last[shared.offsets[1:] - 1] = True
    after = np.where(last, np.arange(len(keep)), after)[keep]
    features = shared.features
    return FQEInputs(
        offsets=np.concatenate([[0], np.cumsum(lengths[kept])]),
        state_features=features.state[keep],
        action_features=features.action[keep],
        reward=shared.reward[keep],
        terminated=shared.terminated[keep],
        truncated=shared.truncated[keep],
        next_state_features=features.after[keep],
        next_action_features=features.action[after][:, None],
        gamma=shared.gamma,
        horizon=shared.horizon,
    )


def _q_error(predicted: np.ndarray, shared: Shared) -> float:
    error = np.sqrt(np.mean((predicted - shared.return_to_go) ** 2))
    return float(error / max(shared.return_to_go.std(), 1e-9))


def _value_error(predicted: np.ndarray, shared: Shared) -> float:
    """The largest gap of a logging policy's mean value at the first turn, in standard deviations of the returns."""
    first = shared.offsets[:-1]
    gap = predicted[first] - shared.return_to_go[first]
    each = [abs(float(gap[shared.policy == p].mean())) for p in np.unique(shared.policy)]
    return max(each) / max(float(shared.return_to_go[first].std()), 1e-9)
