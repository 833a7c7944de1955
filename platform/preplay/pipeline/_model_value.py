"""Q of a target policy inside the world model: a regression of imagined returns on features.

Doubly robust estimates need a value for every logged turn. Rolling out from each would cost a rollout per turn
and policy; a regression over the imagined turns that were made anyway gives the same for nothing.
"""

from dataclasses import dataclass

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor

from preplay.seeding import derive_seed, numpy_rng

ROWS = 30_000


@dataclass(frozen=True)
class ImaginedValues:
    """Imagined turns as regression rows.

    Args:
        state: float32 [N, DS]; action: float32 [N, DA].
        value: float64 [N] imagined discounted return from the turn on, given that the session got there.
        survival: float64 [N] probability that it did.
    """

    state: np.ndarray
    action: np.ndarray
    value: np.ndarray
    survival: np.ndarray


@dataclass(frozen=True)
class ModelValue:
    """A fitted Q function of one policy in the world model."""

    regressor: HistGradientBoostingRegressor
    r2: float

    def q(self, state: np.ndarray, action: np.ndarray) -> np.ndarray:
        """float64 [B] from float32 [B, DS] and [B, DA]."""
        return self.regressor.predict(np.concatenate([state, action], -1))

    def v(self, state: np.ndarray, actions: np.ndarray) -> np.ndarray:
        """Mean Q over the sampled actions: float64 [B] from float32 [B, DS] and [B, K, DA]."""
        rows, count, width = actions.shape
        values = self.q(np.repeat(state, count, 0), actions.reshape(-1, width))
        return values.reshape(rows, count).mean(1)


def fit_model_value(imagined: ImaginedValues, *, seed: int) -> ModelValue:
    """Fit Q by gradient boosting with early stopping on turns drawn by how likely they are reached.

    Weighted rows would do the same, but weighted quantiles take longer than the fit.
    """
    rng = numpy_rng(seed, "model value rows")
    reached = imagined.survival / imagined.survival.sum()
    rows = rng.choice(len(reached), min(ROWS, len(reached)), p=reached)
    features = np.concatenate([imagined.state[rows], imagined.action[rows]], -1)
    regressor = HistGradientBoostingRegressor(
        max_iter=200,
        learning_rate=0.15,
        early_stopping=True,  # pyright: ignore[reportArgumentType]
        n_iter_no_change=5,
        random_state=derive_seed(seed, "model value") % 2**32,
    )
    regressor.fit(features, imagined.value[rows])
    return ModelValue(regressor, float(regressor.score(features, imagined.value[rows])))


def imagined_return_to_go(
    rollout: np.ndarray, reward: np.ndarray, terminated: np.ndarray, gamma: float
) -> np.ndarray:
    """Return from each imagined turn on, given that the session reached it: float64 [N].

    Rows of one rollout are neighbours in order. G_t = r_t + gamma (1 - p_t) G_{t+1}.

    >>> imagined_return_to_go(np.array([0, 0]), np.array([1.0, 4.0]), np.array([0.5, 1.0]), 0.5)
    array([2., 4.])
    """
    result = reward.astype(np.float64).copy()
    last = np.append(rollout[1:] != rollout[:-1], True)
    ends = np.flatnonzero(last)
    starts = np.append(0, ends[:-1] + 1)
    left = np.repeat(ends, ends - starts + 1) - np.arange(len(result))
    for steps in range(1, int(left.max(initial=0)) + 1):
        rows = np.flatnonzero(left == steps)
        result[rows] += gamma * (1 - terminated[rows]) * result[rows + 1]
    return result
