"""What fitted Q evaluation reads: logged turns as features, and what the target policy would do next.

Shapes: R turns, S sessions, K sampled actions, DS and DA state and action features.
"""

from dataclasses import dataclass

import numpy as np

from preplay.errors import PreplayError
from preplay.estimators._batch import may_bootstrap


@dataclass(frozen=True)
class FQEInputs:
    """Logged turns as features, and what the target policy would do next.

    Args:
        offsets: int64 [S + 1].
        state_features: float32 [R, DS].
        action_features: float32 [R, DA], of the logged action.
        reward: float64 [R].
        terminated, truncated: bool [R], as in the log; only the last turn of a session may set them.
        next_state_features: float32 [R, DS].
        next_action_features: float32 [R, K, DA], target-policy actions in the next state.
        gamma: Discount per turn.
        next_action_weights: float64 [R, K] that sum to 1 over K (equal when absent).
        start_action_features: float32 [S, K, DA], target-policy actions in the first state; gives ``v``.
        start_action_weights: float64 [S, K].
        horizon: Number of turns the value is about (see ``SessionBatch``).
    """

    offsets: np.ndarray
    state_features: np.ndarray
    action_features: np.ndarray
    reward: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray
    next_state_features: np.ndarray
    next_action_features: np.ndarray
    gamma: float
    next_action_weights: np.ndarray | None = None
    start_action_features: np.ndarray | None = None
    start_action_weights: np.ndarray | None = None
    horizon: int | None = None

    def __post_init__(self):
        rows = int(self.offsets[-1])
        for name in (
            "state_features",
            "action_features",
            "reward",
            "next_state_features",
            "next_action_features",
        ):
            array = getattr(self, name)
            if len(array) != rows:
                raise PreplayError(f"{name} has {len(array)} rows, but the sessions have {rows} turns.")
            if not np.isfinite(array).all():
                raise PreplayError(f"{name} holds NaN or infinite numbers.")
        if self.next_action_features.ndim != 3:
            raise PreplayError(
                f"next_action_features must be [R, K, DA], not {self.next_action_features.shape}."
            )

    @property
    def turn(self) -> np.ndarray:
        """Position of each row in its session, int64 [R]."""
        return _positions(self.offsets)

    @property
    def follows(self) -> np.ndarray:
        """Whether a value follows each turn, bool [R]."""
        return value_follows(self.offsets, self.terminated, self.truncated, self.horizon)


def value_follows(
    offsets: np.ndarray, terminated: np.ndarray, truncated: np.ndarray, horizon: int | None = None
) -> np.ndarray:
    """Whether a value follows each turn, bool [R]: there the target policy's next action is needed.

    Args:
        offsets: int64 [S + 1].
        terminated, truncated: bool [R].
        horizon: Number of turns the value is about; unlimited when absent.
    """
    turn, last = _positions(offsets), np.zeros(int(offsets[-1]), bool)
    last[offsets[1:] - 1] = True
    cut = may_bootstrap(terminated, truncated, turn + 1, horizon)
    inside = ~np.asarray(terminated, bool) if horizon is None else turn + 1 < horizon
    return np.where(last, cut, inside)


def _positions(offsets: np.ndarray) -> np.ndarray:
    return np.arange(offsets[-1]) - np.repeat(offsets[:-1], np.diff(offsets))
