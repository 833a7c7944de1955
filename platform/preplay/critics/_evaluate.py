"""How good a critic is on tasks it has not seen, before anything is executed (AUC is not uplift: execute, too)."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.stats import rankdata
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import GroupKFold, cross_val_predict

from preplay.critics._critic import Critic, Scores
from preplay.critics._decisions import Decisions
from preplay.critics._encoder import EncodedPools

_PENALTIES = np.logspace(-1, 3, 9)


class Scorer(Protocol):
    """Anything that scores candidates: a critic, a classifier, a distilled network."""

    def score(self, pools: EncodedPools) -> Scores:
        """Scores of all candidates."""
        ...

    def state_distance(self, pools: EncodedPools) -> np.ndarray:
        """Distance of each state from the training data, float64 [N]."""
        ...


@dataclass(frozen=True)
class CriticMetrics:
    """On held-out tasks.

    Args:
        decisions: How many.
        td_error: Root mean square of r + gamma V(s') - Q(s, a), in units of the reward (NaN for actors, CQL).
        auc: P(a right executed action scores above a wrong one), over all tasks.
        auc_within_task: The same within tasks, the mean over them: what choosing in a pool needs.
        calibration_error: Expected calibration error of the scores as probabilities: the best monotone map of half of
            the tasks, measured on the other half.
        chosen_rank: Mean rank share of the executed candidate in its pool, 0 the best.
        action_correlation: Of the executed actions' scores with the return that followed (discounted like the critic;
            a classifier: not at all), see :func:`action_correlation`. What is left where no reward says "right".
    """

    decisions: int
    td_error: float
    auc: float
    auc_within_task: float
    calibration_error: float
    chosen_rank: float
    action_correlation: float


def evaluate_critic(scorer: Scorer, data: Decisions) -> CriticMetrics:
    """Measure a scorer on decisions of held-out tasks."""
    scores = scorer.score(data.pools).mean
    chosen = scores[data.chosen]
    gamma = scorer.config.gamma if isinstance(scorer, Critic) else 1.0
    return CriticMetrics(
        decisions=len(data),
        td_error=_td_error(scorer, data),
        auc=auc(chosen, data.success),
        auc_within_task=_within(chosen, data),
        calibration_error=calibration_error(chosen, data),
        chosen_rank=_chosen_rank(scores, data),
        action_correlation=action_correlation(chosen, returns_to_go(data, gamma), data),
    )


def auc(scores: np.ndarray, labels: np.ndarray) -> float:
    """Area under the ROC curve with ties at one half; NaN where there is only one class."""
    positive = int(labels.sum())
    negative = len(labels) - positive
    if not positive or not negative:
        return float("nan")
    return float((rankdata(scores)[labels].sum() - positive * (positive + 1) / 2) / (positive * negative))


def returns_to_go(data: Decisions, gamma: float) -> np.ndarray:
    """Discounted return from each decision to the end of its logged session, all heads summed, float64 [N]."""
    found = data.reward.sum(axis=1)
    for row in range(len(data) - 1, -1, -1):  # sorted by session and turn: what follows comes later
        if data.following[row] >= 0:
            found[row] += gamma * found[data.following[row]]
    return found


def action_correlation(scores: np.ndarray, followed: np.ndarray, data: Decisions) -> float:
    """Spearman's correlation of scores and returns after what the state alone tells is taken out of both.

    A critic that knows good states and nothing about actions correlates with returns, and chooses badly: what the
    state tells is a ridge regression, cross-fitted over sessions. NaN where one side never varies.

    Args:
        scores: float64 [N], of the executed actions; ``followed``: float64 [N], the return from there on.
    """
    sessions = len(np.unique(data.session))
    if sessions < 2 or not np.ptp(scores) or not np.ptp(followed):
        return float("nan")
    state = np.concatenate([data.pools.state, data.pools.state_embedding], axis=1).astype(np.float64)
    folds = GroupKFold(min(5, sessions))
    left = [
        values - cross_val_predict(RidgeCV(_PENALTIES), state, values, groups=data.session, cv=folds)
        for values in (scores, followed)
    ]
    return float(np.corrcoef(rankdata(left[0]), rankdata(left[1]))[0, 1])


def _within(chosen: np.ndarray, data: Decisions) -> float:
    groups = data.group.astype(str)
    each = [auc(chosen[groups == g], data.success[groups == g]) for g in np.unique(groups)]
    return float(np.nanmean(each)) if np.isfinite(each).any() else float("nan")


def _td_error(scorer: Scorer, data: Decisions) -> float:
    if not isinstance(scorer, Critic) or scorer.config.algorithm != "iql":
        return float("nan")
    value = scorer.state_values(data.pools)
    q = np.mean(scorer.values(data.pools), axis=0)[data.chosen]
    goes_on = (data.following >= 0) & ~data.terminated
    target = data.reward + scorer.config.gamma * np.where(goes_on[:, None], value[data.following], 0.0)
    return float(np.sqrt(((target - q).sum(axis=1) ** 2).mean()))


def calibration_error(chosen: np.ndarray, data: Decisions) -> float:
    """Of the executed actions' scores as probabilities of success; see :class:`CriticMetrics`."""
    from sklearn.isotonic import IsotonicRegression

    names = np.unique(data.group.astype(str))
    first = np.isin(data.group.astype(str), names[::2])
    if not first.any() or first.all() or len(np.unique(data.success)) < 2:
        return float("nan")
    fit = IsotonicRegression(out_of_bounds="clip").fit(chosen[first], data.success[first])
    probability, label = fit.predict(chosen[~first]), data.success[~first]
    edges = np.clip((probability * 10).astype(int), 0, 9)
    gaps = [
        abs(probability[edges == b].mean() - label[edges == b].mean()) * (edges == b).mean()
        for b in np.unique(edges)
    ]
    return float(sum(gaps))


def _chosen_rank(scores: np.ndarray, data: Decisions) -> float:
    offsets, ranks = data.pools.offsets, []
    for i, row in enumerate(data.chosen):
        pool = scores[offsets[i] : offsets[i + 1]]
        if len(pool) > 1:
            ranks.append(
                ((pool > scores[row]).sum() + 0.5 * ((pool == scores[row]).sum() - 1)) / (len(pool) - 1)
            )
    return float(np.mean(ranks)) if ranks else float("nan")
