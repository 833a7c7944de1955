"""The baseline to beat: a plain classifier of whether an action is right at once, with calibrated probabilities."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

from preplay.critics._critic import Scores
from preplay.critics._decisions import Decisions, split_groups
from preplay.critics._encoder import EncodedPools
from preplay.critics._margin import LinearMargin, Margin, TreeMargin
from preplay.critics._scaler import Scaler
from preplay.embedding import EncoderFingerprint
from preplay.errors import PreplayError
from preplay.seeding import derive_seed, numpy_rng

ClassifierKind = Literal["logistic", "boosting"]


@dataclass(frozen=True)
class RewardClassifier:
    """P(the action is right at once | state, action), calibrated by Platt's method on held-out tasks."""

    kind: ClassifierKind
    margin: Margin
    scaler: Scaler
    slope: float
    intercept: float
    feature_names: tuple[str, ...] = ()
    fingerprint: EncoderFingerprint | None = None

    def score(self, pools: EncodedPools) -> Scores:
        """Probability per candidate, float64 [M].

        Raises:
            PreplayError: When the arrays are not of the shape that the classifier was trained on.
        """
        found = (pools.state.shape[1], pools.features.shape[1])
        needed = (len(self.scaler.state_mean), len(self.scaler.feature_mean))
        if found != needed:
            raise PreplayError(
                f"(state, features) have widths {found}, the classifier needs {needed}.",
                fix="Encode with the settings the classifier was trained with.",
            )
        margin = self.margin(_rows(self.scaler, pools, np.arange(len(pools.features))))
        probability = 1 / (1 + np.exp(-(self.slope * margin + self.intercept)))
        return Scores(probability, np.full(len(probability), np.nan))

    def state_distance(self, pools: EncodedPools) -> np.ndarray:
        """Distance of each state from the training data, float64 [N]."""
        return self.scaler.distance(pools)


def train_classifier(
    kind: ClassifierKind,
    data: Decisions,
    *,
    seed: int,
    strength: float = 0.05,
    feature_names: tuple[str, ...] = (),
    fingerprint: EncoderFingerprint | None = None,
) -> RewardClassifier:
    """Fit on two thirds of the tasks' executed actions, calibrate on the rest, then refit on all of them.

    Args:
        kind: ``logistic`` (L2, C = ``strength``) or ``boosting`` (trees of depth 3).
        feature_names, fingerprint: Of the action encoder and its sentence encoder, kept with the classifier.
    """
    if len(np.unique(data.success)) < 2:
        raise PreplayError(
            "a classifier tells right actions (a reward of 1, or extras.solved) from others, and here all are alike.",
            fix="Use iql or cql, which learn from rewards of any size over the whole session.",
        )
    fit, held = split_groups(data, 1 / 3, numpy_rng(seed, "calibration"))
    slope, intercept = 1.0, 0.0
    if len(np.unique(fit.success)) == len(np.unique(held.success)) == 2:
        margin, scaler = _fit(kind, fit, seed, strength)
        log_odds = margin(_rows(scaler, held.pools, held.chosen))
        platt = LogisticRegression(C=1e6).fit(log_odds[:, None], held.success)
        slope, intercept = max(float(platt.coef_[0, 0]), 1e-3), float(platt.intercept_[0])
    margin, scaler = _fit(kind, data, seed, strength)
    return RewardClassifier(kind, margin, scaler, slope, intercept, feature_names, fingerprint)


def _fit(kind: ClassifierKind, data: Decisions, seed: int, strength: float) -> tuple[Margin, Scaler]:
    scaler = Scaler.fit(data.pools)
    rows = _rows(scaler, data.pools, data.chosen)
    if kind == "logistic":
        fitted = LogisticRegression(C=strength, max_iter=2000).fit(rows, data.success)
        return LinearMargin.of(fitted), scaler
    trees = GradientBoostingClassifier(
        n_estimators=80,
        max_depth=3,
        subsample=0.7,
        max_features=0.3,
        random_state=derive_seed(seed, "trees") % 2**32,
    )
    return TreeMargin.of(trees.fit(rows, data.success)), scaler


def _rows(scaler: Scaler, pools: EncodedPools, candidates: np.ndarray) -> np.ndarray:
    """State (turn and sizes), features and mean embedding of these candidates, float64."""
    inputs = scaler.inputs(pools)
    parts = inputs.parts.numpy() * inputs.exists.numpy()[..., None]
    mean = parts.sum(axis=1) / inputs.exists.numpy().sum(axis=1, keepdims=True)
    whole = np.concatenate([inputs.state.numpy()[:, :4], inputs.features.numpy(), mean], axis=1)
    return whole[candidates].astype(np.float64)
