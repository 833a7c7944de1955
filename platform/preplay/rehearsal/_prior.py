"""What the logs' agents would choose: a linear classifier of the choice on what a policy sees.

It is the base policy that rehearsal improves on, the policy that imagined branches go on with, and a prior for
searches: plans that nobody ever logged are where a learned model is wrong.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression

from preplay.embedding import EmbeddedTurns
from preplay.errors import PreplayError
from preplay.rehearsal._text_world import TextWorld
from preplay.rollout import InitialStates

SPREAD_FLOOR = 1e-4


@dataclass(frozen=True)
class LoggedPolicy:
    """Softmax over K choices of a linear function of observations (O numbers).

    Args:
        mean, spread: float64 [O] of the training observations.
        weight: float64 [O, K]; bias: float64 [K].
    """

    mean: np.ndarray
    spread: np.ndarray
    weight: np.ndarray
    bias: np.ndarray

    def __call__(self, observation: np.ndarray) -> np.ndarray:
        """Probability of each choice, float64 [B, K]."""
        scaled = (observation - self.mean) / self.spread
        return softmax(scaled @ self.weight + self.bias, axis=1)


def fit_logged_policy(
    world: TextWorld, turns: EmbeddedTurns, *, history: int = 4, strength: float = 0.02
) -> LoggedPolicy:
    """Fit on all logged turns: each action counts as the choice most similar to it.

    Args:
        history: Earlier turns that states are made of, at least the model's window less one.
        strength: Inverse of the L2 penalty.
    """
    states = world.logged_states(InitialStates.from_turns(turns, np.arange(len(turns)), history))
    seen = world.observe(states).astype(np.float64)
    label = world.choices.nearest(turns.bank.embeddings[turns.action_id])
    used = np.unique(label)
    if len(used) < 2:
        raise PreplayError(
            "all logged actions are most similar to one choice, so there is nothing to choose."
        )
    mean, spread = seen.mean(0), np.maximum(seen.std(0), SPREAD_FLOOR)
    fitted = LogisticRegression(C=strength, max_iter=300).fit((seen - mean) / spread, label)
    return _spread_out(fitted, mean, spread, used, len(world.choices))


def _spread_out(
    fitted: LogisticRegression, mean: np.ndarray, spread: np.ndarray, used: np.ndarray, count: int
) -> LoggedPolicy:
    """Weights of all choices; one that no logged action is nearest to gets next to no probability."""
    coefficients = np.asarray(fitted.coef_, np.float64)
    intercept = np.asarray(fitted.intercept_, np.float64)
    if len(used) == 2:  # the binary case keeps one row: the log-odds of the second class
        coefficients, intercept = (
            np.stack([-coefficients[0], coefficients[0]]) / 2,
            np.append(-1, 1) * intercept / 2,
        )
    weight, bias = np.zeros((len(mean), count)), np.full(count, -30.0)
    weight[:, used], bias[used] = coefficients.T, intercept
    return LoggedPolicy(mean, spread, weight, bias)
