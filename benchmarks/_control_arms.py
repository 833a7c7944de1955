"""Arms that all benchmarks of control share: how a candidate is picked from a pool, and how results are summed up."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from preplay.control import calibrate_threshold
from preplay.critics import (
    CriticConfig,
    Decisions,
    EncodedPools,
    Scorer,
    train_classifier,
    train_critic,
)

Pick = Callable[[EncodedPools], np.ndarray]
"""Scores of all candidates, float64 [M]; the best of each pool is executed."""


@dataclass(frozen=True)
class Result:
    """One arm on one seed; ``coverage`` is the share that was not left to the fallback."""

    success: float
    dangerous: float = 0.0
    turns: float = 1.0
    tokens: float = 0.0
    coverage: float = 1.0
    p50_ms: float = float("nan")
    p99_ms: float = float("nan")


def train_arms(data: Decisions, seed: int, *, steps: int, members: int) -> dict[str, Scorer]:
    """The plain classifiers and every critic, all trained on the same decisions."""
    arms: dict[str, Scorer] = {
        "classifier (logistic)": train_classifier("logistic", data, seed=seed),
        "classifier (boosting)": train_classifier("boosting", data, seed=seed),
    }
    for algorithm in ("bc", "awr", "cql", "iql"):
        config = CriticConfig(algorithm=algorithm, steps=steps)
        arms[algorithm.upper()] = train_critic(config, data, seed=seed)
    config = CriticConfig(algorithm="iql", steps=steps, members=members)
    arms["IQL ensemble"] = train_critic(config, data, seed=seed)
    return arms


def best_of_each(scores: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Row of the best candidate of each pool, int64 [N]; ties go to the earlier one, NaN never wins."""
    finite = np.where(np.isfinite(scores), scores, -np.inf)
    return np.array([a + int(np.argmax(finite[a:b])) for a, b in pairwise(offsets)], np.int64)


def abstaining(scorer: Scorer, calibration: Decisions, right: np.ndarray, target_risk: float) -> float:
    """Confidence below which an arm abstains, from pools of calibration tasks whose outcomes are known."""
    scores = scorer.score(calibration.pools).mean
    chosen = best_of_each(scores, calibration.pools.offsets)
    return calibrate_threshold(scores[chosen], right[chosen], target_risk=target_risk).value


def summarize(rows: dict[str, list[Result]], first: str, oracle: str) -> dict[str, float]:
    """Per arm: mean success, uplift with its 95 % interval over seeds, share of the gap closed, the rest."""
    base = np.array([r.success for r in rows[first]])
    gap = np.mean([r.success for r in rows[oracle]]) - base.mean()
    out: dict[str, float] = {}
    for arm, results in rows.items():
        success = np.array([r.success for r in results])
        uplift = success - base
        half = 1.96 * uplift.std(ddof=1) / np.sqrt(len(uplift)) if len(uplift) > 1 else float("nan")
        out |= {
            f"{arm} | success": float(success.mean()),
            f"{arm} | uplift": float(uplift.mean()),
            f"{arm} | uplift +-": float(half),
            f"{arm} | gap closed": float(uplift.mean() / gap) if gap else float("nan"),
            f"{arm} | sd over seeds": float(success.std(ddof=1)) if len(success) > 1 else float("nan"),
        }
        for name in ("dangerous", "turns", "tokens", "coverage", "p50_ms", "p99_ms"):
            out[f"{arm} | {name}"] = float(np.mean([getattr(r, name) for r in results]))
    return out
