"""The true value of a policy: play it many times in an environment whose dynamics are known."""

from dataclasses import dataclass

import numpy as np

from preplay.environments._protocol import Environment
from preplay.policies import Policy


@dataclass(frozen=True)
class TruthResult:
    """Monte Carlo value of a policy.

    Args:
        policy: Its name.
        value: Mean discounted return of a session.
        standard_error: Of ``value``: standard deviation of the returns over the root of ``sessions``.
        sessions: Sessions played.
        mean_length: Turns of a session.
        resolved, sale, churned: Shares of sessions.
        gamma: Discount of one turn.
    """

    policy: str
    value: float
    standard_error: float
    sessions: int
    mean_length: float
    resolved: float
    sale: float
    churned: float
    gamma: float


def truth(
    policy: Policy,
    environment: Environment,
    *,
    sessions: int = 20_000,
    seed: int = 0,
    gamma: float | None = None,
) -> TruthResult:
    """Play ``sessions`` sessions. ``gamma`` defaults to the environment's."""
    gamma = environment.gamma if gamma is None else gamma
    played = environment.play(policy, sessions, seed, gamma)
    error = float(np.std(played.returns, ddof=1) / np.sqrt(sessions)) if sessions > 1 else float("nan")
    return TruthResult(
        policy.name,
        float(played.returns.mean()),
        error,
        sessions,
        float(played.lengths.mean()),
        float(played.resolved.mean()),
        float(played.sale.mean()),
        float(played.churned.mean()),
        gamma,
    )
