"""Logs of several policies: how much a session of each of them counts for one target.

Importance weights average 1 over the sessions of *each* logging policy, so any fixed factor per policy leaves an
estimate consistent. As they were logged, the sessions of a policy far from the target (a few huge weights among
many near 0) set the variance of the whole. Counted by their effective number, as in Agarwal et al. 2017 ("Effective
evaluation using logged bandit feedback from multiple loggers"), they cannot. Rewards play no part.

Shapes: S sessions, D features.
"""

from dataclasses import replace

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from preplay.estimators._batch import SessionBatch
from preplay.estimators._diagnostics import mass_balance
from preplay.estimators._protocol import get_estimator
from preplay.estimators._terms import Stats
from preplay.estimators._verdict import Thresholds
from preplay.seeding import numpy_rng

FEWEST = 50
"""Sessions of a logging policy below which its effective number says nothing."""
_FOLDS = 5
_AUC, _ERRORS = 0.55, 3.0
_MOST = 20_000


def logger_weights(batch: SessionBatch, loggers: np.ndarray) -> dict[str, float]:
    """What a session of each logging policy counts; 1 on average over the sessions.

    In proportion to the effective share of the policy's sessions at the last turn. A policy whose weights miss a
    fifth of the target's mass (it never acts as the target often does) counts 0 if another's do not; being stricter
    lost whole loggers to chance, and accuracy with them. One of fewer than ``FEWEST`` sessions counts as little as
    the least of the others. All count 1 where nothing else can be said.

    Args:
        batch: The sessions with ``log_ratio`` of the target.
        loggers: str [S], who acted in each session.
    """
    names, which = np.unique(np.asarray(loggers, str), return_inverse=True)
    sizes = np.bincount(which)
    judged = np.flatnonzero(sizes >= FEWEST)
    if len(names) < 2 or not len(judged):
        return dict.fromkeys(names.tolist(), 1.0)
    found = np.array([_effective_share(batch.select(np.flatnonzero(which == i))) for i in judged])
    factors = np.full(len(names), found.min())
    factors[judged] = found
    total = float((factors * sizes).sum())
    if not total > 0:
        return dict.fromkeys(names.tolist(), 1.0)
    return dict(zip(names.tolist(), (factors * sizes.sum() / total).tolist(), strict=True))


def weigh_loggers(batch: SessionBatch, loggers: np.ndarray, weights: dict[str, float]) -> SessionBatch:
    """The batch whose sessions count as ``logger_weights`` says: a factor on the ratio of each first turn."""
    assert batch.log_ratio is not None
    ratio = batch.log_ratio.copy()
    with np.errstate(divide="ignore"):
        factors = np.log([weights[name] for name in loggers])
    ratio[batch.offsets[:-1]] += factors
    return replace(batch, log_ratio=ratio)


def starts_differ(features: np.ndarray, loggers: np.ndarray, seed: int = 0) -> str | None:
    """The logging policy whose sessions start in other states than the rest, None where all start alike.

    If one policy served other customers than another, counting its sessions more would evaluate the target on
    them. A cross-fitted logistic regression tells each policy's first states from the rest: alike up to an AUC
    of 0.55, or three standard errors of an AUC by chance (Hanley & McNeil 1982), whichever is more.

    Args:
        features: float [S, D] of the first states.
        loggers: str [S].
        seed: Of the folds, and of the at most 20,000 sessions looked at.
    """
    picked = np.sort(numpy_rng(seed, "starts").permutation(len(features))[:_MOST])
    features, loggers = np.asarray(features)[picked], np.asarray(loggers, str)[picked]
    names, sizes = np.unique(loggers, return_counts=True)
    for name, size in zip(names.tolist(), sizes.tolist(), strict=True):
        others = len(loggers) - size
        if min(size, others) < FEWEST:
            continue
        chance = np.sqrt((size + others + 1) / (12 * size * others))
        if _auc(features, loggers == name, seed) > max(_AUC, 0.5 + _ERRORS * chance):
            return name
    return None


def _effective_share(batch: SessionBatch) -> float:
    stats = get_estimator("wpdis").statistics(batch)
    assert isinstance(stats, Stats)
    if mass_balance(stats).missing_at_least > Thresholds().missing_mass:
        return 0.0
    return float(stats.ess()[-1]) / batch.n_sessions


def _auc(features: np.ndarray, label: np.ndarray, seed: int) -> float:
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=200))
    folds = StratifiedKFold(_FOLDS, shuffle=True, random_state=seed)
    score = cross_val_predict(model, features, label, cv=folds, method="decision_function")
    return float(roc_auc_score(label, score))
