"""Arms that all settings of the control benchmark share, and how a choice is made from their scores."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from preplay.control import calibrate_threshold, risk_coverage
from preplay.critics import (
    Algorithm,
    ClassifierKind,
    CriticConfig,
    Decisions,
    EncodedPools,
    Scorer,
    train_classifier,
    train_critic,
)

COVERAGES = (0.2, 0.4, 0.6, 0.8, 1.0)
TARGET_RISK = 0.1


CLASSIFIERS: dict[str, ClassifierKind] = {
    "classifier (logistic)": "logistic",
    "classifier (boosting)": "boosting",
}
CRITICS: dict[str, Algorithm] = {
    "BC": "bc",
    "AWR": "awr",
    "CQL": "cql",
    "IQL": "iql",
    "actor-critic": "actor_critic",
}
ENSEMBLE = "IQL ensemble"
ARMS = (*CLASSIFIERS, *CRITICS, ENSEMBLE)


def train_arms(
    data: Decisions, seed: int, *, steps: int, members: int, only: Sequence[str] = ARMS
) -> dict[str, Scorer]:
    """The plain classifiers and every critic, all trained on the same decisions."""
    return {arm: _train(arm, data, seed, steps, members) for arm in only}


def _train(arm: str, data: Decisions, seed: int, steps: int, members: int) -> Scorer:
    if arm in CLASSIFIERS:
        return train_classifier(CLASSIFIERS[arm], data, seed=seed)
    if arm == ENSEMBLE:
        return train_critic(CriticConfig(algorithm="iql", steps=steps, members=members), data, seed=seed)
    return train_critic(CriticConfig(algorithm=CRITICS[arm], steps=steps), data, seed=seed)


def best_of_each(scores: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Row of the best candidate of each pool, int64 [N]; ties go to the earlier one, NaN never wins."""
    finite = np.where(np.isfinite(scores), scores, -np.inf)
    return np.array([a + int(np.argmax(finite[a:b])) for a, b in pairwise(offsets)], np.int64)


def abstaining(scorer: Scorer, pools: EncodedPools, right: np.ndarray) -> float:
    """Confidence below which an arm abstains, from calibration pools whose outcomes are known (bool [M])."""
    scores = scorer.score(pools).mean
    chosen = best_of_each(scores, pools.offsets)
    return calibrate_threshold(scores[chosen], right[chosen], target_risk=TARGET_RISK).value


def coverage_curve(confidence: np.ndarray, right: np.ndarray) -> dict[str, float]:
    """Success of the most confident decisions at each of :data:`COVERAGES`."""
    curve = risk_coverage(confidence, right)
    places = [max(0, round(share * len(curve.risk)) - 1) for share in COVERAGES]
    return {
        f"success at coverage {share}": float(1 - curve.risk[place])
        for share, place in zip(COVERAGES, places, strict=True)
    }
