"""Fitted classifiers as plain arrays, so that they are saved without pickle and score without their library.

M rows, F features, T trees, N nodes of the largest tree.
"""

from dataclasses import dataclass

import numpy as np
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.linear_model import LogisticRegression


@dataclass(frozen=True)
class LinearMargin:
    """Log-odds of a logistic regression.

    Args:
        weights: float64 [F].
        offset: float64 [1].
    """

    weights: np.ndarray
    offset: np.ndarray

    @classmethod
    def of(cls, model: LogisticRegression) -> "LinearMargin":
        """The fitted model's numbers."""
        return cls(np.asarray(model.coef_[0], np.float64), np.asarray(model.intercept_, np.float64))

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        """Log-odds float64 [M] of rows float64 [M, F]."""
        return rows @ self.weights + self.offset[0]


@dataclass(frozen=True)
class TreeMargin:
    """Log-odds of gradient-boosted trees: ``start`` plus each tree's leaf value (already times the learning rate).

    Args:
        start: float64 [1].
        feature, left, right: int64 [T, N]; a leaf has -1 as its children.
        threshold: float64 [T, N]; a row goes left when its feature, as float32, is not larger.
        value: float64 [T, N].
    """

    start: np.ndarray
    feature: np.ndarray
    left: np.ndarray
    right: np.ndarray
    threshold: np.ndarray
    value: np.ndarray

    @classmethod
    def of(cls, model: GradientBoostingClassifier) -> "TreeMargin":
        """The fitted model's numbers."""
        trees = [tree.tree_ for tree in model.estimators_[:, 0]]
        nodes = max(tree.node_count for tree in trees)

        def padded(arrays: list[np.ndarray], empty: float) -> np.ndarray:
            rows = [np.pad(a, (0, nodes - len(a)), constant_values=empty) for a in arrays]
            return np.stack(rows)

        prior = np.asarray(model.init_.class_prior_, np.float64)  # pyright: ignore[reportAttributeAccessIssue]
        return cls(
            start=np.log(prior[1:] / prior[:1]),
            feature=padded([t.feature for t in trees], -1).astype(np.int64),
            left=padded([t.children_left for t in trees], -1).astype(np.int64),
            right=padded([t.children_right for t in trees], -1).astype(np.int64),
            threshold=padded([t.threshold for t in trees], 0.0),
            value=padded([t.value[:, 0, 0] * model.learning_rate for t in trees], 0.0),
        )

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        """Log-odds float64 [M] of rows float64 [M, F]."""
        single, row = rows.astype(np.float32), np.arange(len(rows))
        total = np.full(len(rows), self.start[0])
        for tree in range(len(self.feature)):
            node = np.zeros(len(rows), np.int64)
            while (inner := self.left[tree, node] >= 0).any():
                smaller = single[row, self.feature[tree, node]] <= self.threshold[tree, node]
                child = np.where(smaller, self.left[tree, node], self.right[tree, node])
                node = np.where(inner, child, node)
            total += self.value[tree, node]
        return total


Margin = LinearMargin | TreeMargin
