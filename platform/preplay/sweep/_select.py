"""Which trials make the ensemble: greedily, whoever lowers the validation error of the average most; or the best."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

NEAR = 0.05
"""Share by which a trial's figure may be off the best one's and still count as equally good."""


@dataclass(frozen=True)
class Selection:
    """Chosen candidates (places in the given order) and the average's error after each."""

    chosen: list[int]
    losses: list[float]


def select_diverse(
    predictions: Sequence[np.ndarray], loss: Callable[[np.ndarray], float], *, size: int
) -> Selection:
    """Caruana et al. 2004, without repetition: a member is added only if the average's error falls.

    A near copy of a member changes the average little; one that errs elsewhere lowers its error. That is all the
    diversity there is to want.

    Args:
        predictions: float64 [V] per candidate, the best candidate first.
        loss: Validation error of an averaged prediction.
    """
    chosen, losses = [0], [loss(predictions[0])]
    while len(chosen) < min(size, len(predictions)):
        left = [i for i in range(len(predictions)) if i not in chosen]
        trial = {i: loss(np.mean([predictions[j] for j in (*chosen, i)], axis=0)) for i in left}
        best = min(left, key=lambda i: (trial[i], i))
        if not trial[best] < losses[-1]:
            break
        chosen.append(best)
        losses.append(trial[best])
    return Selection(chosen, losses)


def nearly_best(figures: Sequence[float], *, size: int) -> list[int]:
    """Places of ``size`` members, taken in turn from the trials that are within 5 % of the first and best one.

    So there are as many members as were asked for: one trial may give several, which are trained from other seeds.
    """
    near = [i for i, figure in enumerate(figures) if abs(figure - figures[0]) <= NEAR * abs(figures[0])]
    return [near[place % len(near)] for place in range(size)]
