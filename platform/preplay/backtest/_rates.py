"""Estimators of what each turn of a left-out policy brings, learned from the other policies' turns.

R turns; T training rows, N rows to predict, F features.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

from preplay.backtest._config import Learner
from preplay.seeding import derive_seed, numpy_rng

_NEIGHBOURS = 40
_QUANTILES = np.linspace(0, 1, 33)
_CHUNK = 1024


class Classifier(Protocol):
    """Chance of an event from features."""

    def fit(self, x: np.ndarray, y: np.ndarray, weight: np.ndarray) -> "Classifier":
        """Learn from float64 [T, F], 0/1 [T] and weights [T]."""
        ...

    def predict(self, x: np.ndarray) -> np.ndarray:
        """Chances, float64 [N]."""
        ...


class Logistic:
    """Regularised logistic regression on standardised features."""

    def fit(self, x: np.ndarray, y: np.ndarray, weight: np.ndarray) -> "Logistic":
        self.mean = x.mean(0)
        spread = x.std(0)
        self.spread = np.where(spread > 1e-9, spread, 1.0)
        self.model = LogisticRegression(max_iter=300, tol=1e-3).fit(self._scaled(x), y, sample_weight=weight)
        return self

    def predict(self, x: np.ndarray) -> np.ndarray:
        return self.model.predict_proba(self._scaled(x))[:, 1]

    def _scaled(self, x: np.ndarray) -> np.ndarray:
        return (x - self.mean) / self.spread


class Boosting:
    """Gradient-boosted trees, small enough for a few thousand rows.

    Features are cut into quantiles first: the trees' own binning of weighted rows takes longer than the trees.
    Constant ones are left out: no tree could split them.
    """

    def __init__(self, seed: int = 0):
        self.model = HistGradientBoostingClassifier(
            max_iter=50,
            max_leaf_nodes=12,
            learning_rate=0.1,
            min_samples_leaf=30,
            max_bins=63,
            random_state=derive_seed(seed, "boosting") % 2**32,
        )

    def fit(self, x: np.ndarray, y: np.ndarray, weight: np.ndarray) -> "Boosting":
        edges = [np.unique(column) for column in np.quantile(x, _QUANTILES, axis=0).T]
        self.used = [i for i, e in enumerate(edges) if len(e) > 1] or [0]
        self.edges = [edges[i] for i in self.used]
        self.model.fit(self._binned(x), y, sample_weight=weight)
        return self

    def predict(self, x: np.ndarray) -> np.ndarray:
        return self.model.predict_proba(self._binned(x))[:, 1]

    def _binned(self, x: np.ndarray) -> np.ndarray:
        return np.column_stack(
            [np.searchsorted(e, x[:, i]) for i, e in zip(self.used, self.edges, strict=True)]
        )


class Neighbours:
    """Mean of the nearest training rows, in a space where a feature counts as much as a logistic model uses it."""

    def fit(self, x: np.ndarray, y: np.ndarray, weight: np.ndarray) -> "Neighbours":
        self.metric = Logistic().fit(x, y, weight)
        self.scale = np.abs(self.metric.model.coef_[0]) + 0.05
        self.points, self.y, self.weight = self._place(x), y, weight
        return self

    def predict(self, x: np.ndarray) -> np.ndarray:
        found = [self._of(part) for part in np.split(self._place(x), range(_CHUNK, len(x), _CHUNK))]
        return np.concatenate(found)

    def _place(self, x: np.ndarray) -> np.ndarray:
        return (self.metric._scaled(x) * self.scale).astype(np.float32)

    def _of(self, x: np.ndarray) -> np.ndarray:
        far = (self.points**2).sum(1)[None] - 2 * x @ self.points.T
        near = np.argpartition(far, min(_NEIGHBOURS, far.shape[1] - 1), axis=1)[:, :_NEIGHBOURS]
        weight = self.weight[near]
        return (self.y[near] * weight).sum(1) / weight.sum(1)


def make_learner(name: Learner, seed: int = 0) -> Classifier:
    """A fresh learner."""
    if name == "boosting":
        return Boosting(seed)
    return Logistic() if name == "logistic" else Neighbours()


@dataclass(frozen=True)
class Sample:
    """Training rows, thinned: all events, and as many others as fit, weighted to stand for all."""

    rows: np.ndarray
    weight: np.ndarray


def thin(rows: np.ndarray, event: np.ndarray, most: int, seed: int) -> Sample:
    """At most about ``most`` of the rows (int64 [T]); events are thinned only when they alone are too many."""
    rng = numpy_rng(seed, "thin", len(rows))
    parts, weights = [], []
    room = most
    for kind, share in ((event[rows] > 0, 0.5), (event[rows] <= 0, 1.0)):
        found = rows[kind]
        keep = min(len(found), int(room * share))
        chosen = found if keep == len(found) else np.sort(rng.choice(found, keep, replace=False))
        parts.append(chosen)
        weights.append(np.full(len(chosen), len(found) / max(len(chosen), 1)))
        room -= len(chosen)
    return Sample(np.concatenate(parts), np.concatenate(weights))


def event_rate(
    learner: Learner,
    features: np.ndarray,
    event: np.ndarray,
    train: np.ndarray,
    test: np.ndarray,
    *,
    most: int,
    seed: int,
) -> np.ndarray:
    """Chance of the event in the test rows, float64 [N]; constant where training knows only one answer.

    Args:
        features: float64 [R, F].
        event: float64 [R] 0 or 1.
        train, test: int64 row numbers.
        most: Training rows used at most.
    """
    positives = event[train].sum()
    if positives < 5 or positives > len(train) - 5 or not len(test):
        return np.full(len(test), event[train].mean() if len(train) else 0.0)
    sample = thin(train, event, most, seed)
    model = make_learner(learner, seed).fit(features[sample.rows], event[sample.rows], sample.weight)
    return model.predict(features[test])
