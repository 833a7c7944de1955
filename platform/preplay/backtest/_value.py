"""From chances per turn to the value of a policy.

Retries are not independent draws: a session that failed twice is a harder one. Chances are learned from turns of
sessions that were still running, so they already are chances *given* the failures before (a discrete hazard), and
the value is the hazards' survival product, averaged per turn over the target's running sessions.
"""

import numpy as np


def survival_value(
    success: np.ndarray,
    leave: np.ndarray,
    turn: np.ndarray,
    *,
    horizon: int | None = None,
    gamma: float = 1.0,
) -> float:
    """Value of a session: sum over turns of discount × (share still running) × (mean chance to solve now).

    The share still running follows from the predicted chances, never from the logged lengths, which would give
    the outcome away where sessions stop at success.

    Args:
        success, leave: float64 [N] predicted chances that the turn solves the session, or ends it unsolved.
        turn: int64 [N] position in the session.
        horizon: Turns a session may have.
        gamma: Discount per turn.

    >>> survival_value(np.array([.5, .5, .2]), np.zeros(3), np.array([0, 0, 1]))
    0.6
    """
    alive, solved = 1.0, 0.0
    for position in range(int(turn.max(initial=-1)) + 1 if horizon is None else horizon):
        here = turn == position
        if not here.any():
            break
        solved += gamma**position * alive * float(success[here].mean())
        alive *= max(0.0, 1.0 - float(success[here].mean()) - float(leave[here].mean()))
    return solved


def ended_value(success: np.ndarray, session: np.ndarray, solved_or_left: np.ndarray) -> float:
    """Where sessions do not stop at success: the mean over sessions of the chance at their last turn, given an end.

    Args:
        success: float64 [N] predicted (discounted) chance that a session which ends here is solved.
        session: int64 [N].
        solved_or_left: bool [N] last turns.
    """
    count = len(np.unique(session))
    return float(success[solved_or_left].sum() / count) if count else float("nan")
