"""Propensities that were not logged: a calibrated classifier of the action cluster, judged out of fold.

Shapes: R turns, C clusters, D features.
"""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize_scalar
from sklearn.linear_model import LogisticRegression

from preplay.errors import PreplayError
from preplay.estimators._fqe_net import Standardiser
from preplay.seeding import numpy_rng


@dataclass(frozen=True)
class Calibration:
    """Predicted against observed frequency of clusters, all clusters and turns pooled.

    Args:
        predicted, observed: float64 [bins], mean predicted probability and observed frequency.
        count: int64 [bins], (turn, cluster) pairs.
        ece: Expected calibration error of the most likely cluster: |confidence − accuracy| averaged over
            turns.
        brier: Σ over clusters of (probability − indicator)², averaged over turns; 0 is perfect, 2 is worst.
        log_loss: Mean −log-probability of the logged cluster.
    """

    predicted: np.ndarray
    observed: np.ndarray
    count: np.ndarray
    ece: float
    brier: float
    log_loss: float


@dataclass(frozen=True)
class PropensityModel:
    """Probability of each action cluster given the state's features."""

    scaler: Standardiser
    weights: np.ndarray
    intercepts: np.ndarray
    temperature: float
    floor: float

    def log_prob_all(self, features: np.ndarray) -> np.ndarray:
        """Log-probabilities, float64 [N, C]."""
        scores = self.scaler.apply(features).astype(np.float64) @ self.weights + self.intercepts
        return _log_softmax(scores / self.temperature, self.floor)

    def log_prob(self, features: np.ndarray, cluster: np.ndarray) -> np.ndarray:
        """Log-probability of one cluster per row, float64 [N]."""
        return np.take_along_axis(self.log_prob_all(features), np.asarray(cluster)[:, None], 1)[:, 0]


@dataclass(frozen=True)
class EstimatedPropensities:
    """Propensities of the logged turns and how good they are.

    Args:
        log_prob: float64 [R], of the logged cluster, by a model that never saw the turn's session.
        model: Fitted on all sessions, for other states.
        calibration: Out of fold.
    """

    log_prob: np.ndarray
    model: PropensityModel
    calibration: Calibration


def estimate_propensities(
    features: np.ndarray,
    cluster: np.ndarray,
    session: np.ndarray,
    n_clusters: int,
    *,
    folds: int = 5,
    floor: float = 1e-4,
    seed: int = 0,
) -> EstimatedPropensities:
    """Fit P(cluster | state) with the temperature that fits held-out sessions best.

    Args:
        features: float [R, D] of the state before the action.
        cluster: int [R], cluster of the logged action, from 0.
        session: int [R]; whole sessions are held out.
        n_clusters: C.
        folds: Parts the sessions are split into.
        floor: Probability mixed in evenly: no logged action gets a zero.
        seed: Of the split.
    """
    cluster, session = np.asarray(cluster), np.asarray(session)
    sessions = np.unique(session)
    if len(sessions) < folds:
        raise PreplayError(
            f"{len(sessions)} sessions cannot be split into {folds} parts.", fix="Log more sessions."
        )
    part = numpy_rng(seed, "propensity").permutation(len(sessions)) % folds
    fold = part[np.searchsorted(sessions, session)]
    scores = np.empty((len(cluster), n_clusters))
    for k in range(folds):
        scaler, weights, intercepts = _fit(features[fold != k], cluster[fold != k], n_clusters)
        scores[fold == k] = scaler.apply(features[fold == k]).astype(np.float64) @ weights + intercepts
    temperature = _best_temperature(scores, cluster, floor)
    log_all = _log_softmax(scores / temperature, floor)
    model = PropensityModel(*_fit(features, cluster, n_clusters), temperature, floor)
    picked = np.take_along_axis(log_all, cluster[:, None], 1)[:, 0]
    return EstimatedPropensities(picked, model, calibration(np.exp(log_all), cluster))


def calibration(probabilities: np.ndarray, cluster: np.ndarray, bins: int = 10) -> Calibration:
    """Compare probabilities [R, C] with the clusters that were taken [R]."""
    taken = np.zeros(probabilities.shape, bool)
    np.put_along_axis(taken, cluster[:, None], True, 1)
    which, count = _bins(probabilities.ravel(), bins)
    predicted = np.bincount(which, probabilities.ravel(), bins)[count > 0] / count[count > 0]
    observed = np.bincount(which, taken.ravel().astype(float), bins)[count > 0] / count[count > 0]
    logged = np.take_along_axis(probabilities, cluster[:, None], 1)
    return Calibration(
        predicted,
        observed,
        count[count > 0],
        _top_label_error(probabilities, cluster, bins),
        float(np.mean(((probabilities - taken) ** 2).sum(1))),
        float(-np.mean(np.log(np.maximum(logged, 1e-300)))),
    )


def _top_label_error(probabilities: np.ndarray, cluster: np.ndarray, bins: int) -> float:
    confidence, right = probabilities.max(1), probabilities.argmax(1) == cluster
    which, _ = _bins(confidence, bins)
    gap = np.bincount(which, confidence - right, bins)
    return float(np.abs(gap).sum() / len(cluster))


def _bins(values: np.ndarray, bins: int) -> tuple[np.ndarray, np.ndarray]:
    which = np.minimum((values * bins).astype(int), bins - 1)
    return which, np.bincount(which, minlength=bins)


def _fit(
    features: np.ndarray, cluster: np.ndarray, n_clusters: int
) -> tuple[Standardiser, np.ndarray, np.ndarray]:
    """Multinomial logistic regression; clusters absent from these rows keep a very low score."""
    scaler = Standardiser.fit(features)
    weights, intercepts = np.zeros((features.shape[1], n_clusters)), np.full(n_clusters, -12.0)
    seen = np.unique(cluster)
    if len(seen) == 1:
        intercepts[seen] = 0.0
        return scaler, weights, intercepts
    fit = LogisticRegression(C=1.0, max_iter=300).fit(scaler.apply(features), cluster)
    if len(seen) == 2:  # scikit-learn keeps one column for two classes
        weights[:, seen[1]], intercepts[seen] = fit.coef_[0], [0.0, fit.intercept_[0]]
    else:
        weights[:, seen], intercepts[seen] = fit.coef_.T, fit.intercept_
    return scaler, weights, intercepts


def _best_temperature(scores: np.ndarray, cluster: np.ndarray, floor: float) -> float:
    def loss(log_temperature: float) -> float:
        log_prob = _log_softmax(scores / np.exp(log_temperature), floor)
        return float(-np.take_along_axis(log_prob, cluster[:, None], 1).mean())

    return float(np.exp(minimize_scalar(loss, bounds=(-2, 3), method="bounded").x))  # pyright: ignore[reportAttributeAccessIssue]


def _log_softmax(scores: np.ndarray, floor: float) -> np.ndarray:
    shifted = scores - scores.max(1, keepdims=True)
    probability = np.exp(shifted) / np.exp(shifted).sum(1, keepdims=True)
    return np.log((1 - floor) * probability + floor / scores.shape[1])
