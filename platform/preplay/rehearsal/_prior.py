"""What the logs' agents would choose: a small network from what a policy sees to the choice.

It is the base policy that rehearsal improves on, the policy that imagined branches go on with, and a prior for
searches: plans that nobody ever logged are where a learned model is wrong.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import softmax
from sklearn.neural_network import MLPClassifier

from preplay.embedding import EmbeddedTurns
from preplay.errors import PreplayError
from preplay.rehearsal._text_world import TextWorld
from preplay.rollout import InitialStates
from preplay.seeding import derive_seed

SPREAD_FLOOR = 1e-4
NEVER = -30.0


@dataclass(frozen=True)
class LoggedPolicy:
    """Softmax over K choices of one hidden layer (J units, ReLU) on standardised observations (O numbers).

    Args:
        mean, spread: float64 [O] of the training observations.
        inner: float64 [O, J] weights and [J] biases; outer: [J, K] and [K].
    """

    mean: np.ndarray
    spread: np.ndarray
    inner: tuple[np.ndarray, np.ndarray]
    outer: tuple[np.ndarray, np.ndarray]

    def __call__(self, observation: np.ndarray) -> np.ndarray:
        """Probability of each choice, float64 [B, K]."""
        scaled = (observation - self.mean) / self.spread
        hidden = np.maximum(scaled @ self.inner[0] + self.inner[1], 0)
        return softmax(hidden @ self.outer[0] + self.outer[1], axis=1)


def fit_logged_policy(
    world: TextWorld,
    turns: EmbeddedTurns,
    *,
    seed: int,
    history: int = 4,
    hidden: int = 96,
    decay: float = 1.0,
) -> LoggedPolicy:
    """Fit on all logged turns, stopping early on a tenth of them: each action counts as the choice most like it.

    Args:
        history: Earlier turns that states are made of, at least the model's window less one.
        hidden: J.
        decay: L2 penalty.
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
    fitted = MLPClassifier(
        (hidden,),
        alpha=decay,
        early_stopping=True,
        max_iter=60,
        n_iter_no_change=5,
        random_state=derive_seed(seed, "logged policy") % 2**32,
    ).fit((seen - mean) / spread, label)
    return _spread_out(fitted, mean, spread, used, len(world.choices))


def _spread_out(
    fitted: MLPClassifier, mean: np.ndarray, spread: np.ndarray, used: np.ndarray, count: int
) -> LoggedPolicy:
    """Weights of all choices; one that no logged action is nearest to gets next to no probability."""
    (inner, outer), (inner_bias, outer_bias) = fitted.coefs_, fitted.intercepts_
    if len(used) == 2:  # the binary case has one output: the log-odds of the second class
        outer, outer_bias = np.concatenate([0 * outer, outer], 1), np.append(0.0, outer_bias)
    weight, bias = np.zeros((len(outer), count)), np.full(count, NEVER)
    weight[:, used], bias[used] = outer, outer_bias
    return LoggedPolicy(mean, spread, (inner, inner_bias), (weight, bias))
