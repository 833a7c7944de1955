"""How well estimates rank policies, once the truth is known: for benchmarks and backtests.

Shapes: P policies; ``true`` and ``estimated`` are float64 [P]. Ties in ``estimated`` keep the order given.
"""

import numpy as np
from scipy.stats import rankdata

from preplay.errors import PreplayError


def spearman(true: np.ndarray, estimated: np.ndarray) -> float:
    """Rank correlation with mid-ranks; NaN when either side is all ties."""
    a, b = rankdata(true), rankdata(estimated)
    if len(a) < 2 or np.ptp(a) == 0 or np.ptp(b) == 0:
        return float("nan")
    return float(np.corrcoef(a, b)[0, 1])


def normalised_regret_at_k(true: np.ndarray, estimated: np.ndarray, k: int) -> float:
    """DOPE's regret@k: (best of all − best of the k picked) / best of all. NaN when the best value is 0.

    Fu et al. 2021. Divides by the value itself, so it says little for values near 0 or below.
    """
    true = np.asarray(true, np.float64)
    best = float(true.max())
    return (best - float(true[_top(estimated, k)].max())) / best if best != 0 else float("nan")


def value_regret_at_k(true: np.ndarray, estimated: np.ndarray, k: int) -> float:
    """Best of all − best of the k picked, in the unit of the values."""
    true = np.asarray(true, np.float64)
    return float(true.max() - true[_top(estimated, k)].max())


def sum_regret_at_k(true: np.ndarray, estimated: np.ndarray, k: int) -> float:
    """SCOPE's regret@k: sum of the k truly best − sum of the k picked. Not DOPE's regret."""
    true = np.asarray(true, np.float64)
    return float(true[_top(true, k)].sum() - true[_top(estimated, k)].sum())


def sharpe_ratio_at_k(true: np.ndarray, estimated: np.ndarray, k: int, baseline: float) -> float:
    """max(best of the k picked − baseline, 0) / their standard deviation (ddof 1); NaN for k = 1 or equal ones.

    Kiyohara et al. 2024: what deploying the k picks returns for its risk.
    """
    picked = np.asarray(true, np.float64)[_top(estimated, k)]
    if k < 2 or np.ptp(picked) == 0:
        return float("nan")
    return float(max(picked.max() - baseline, 0.0) / picked.std(ddof=1))


def picked_at_k(true: np.ndarray, estimated: np.ndarray, k: int) -> dict[str, float]:
    """Best, mean and worst true value among the k picked."""
    picked = np.asarray(true, np.float64)[_top(estimated, k)]
    return {"best": float(picked.max()), "mean": float(picked.mean()), "worst": float(picked.min())}


def safety_errors(true: np.ndarray, estimated: np.ndarray, threshold: float) -> dict[str, float]:
    """Type I: share of the truly safe (≥ threshold) called unsafe; type II: of the truly unsafe called safe.

    NaN where there is none of that kind.
    """
    safe = np.asarray(true) >= threshold
    called = np.asarray(estimated) >= threshold
    return {
        "type_i": float(np.mean(~called[safe])) if safe.any() else float("nan"),
        "type_ii": float(np.mean(called[~safe])) if (~safe).any() else float("nan"),
    }


def _top(values: np.ndarray, k: int) -> np.ndarray:
    if not 1 <= k <= len(values):
        raise PreplayError(f"k is {k}, but there are {len(values)} policies.")
    if np.isnan(np.asarray(values, np.float64)).any():
        raise PreplayError("a policy without an estimate cannot be ranked.", fix="Leave it out.")
    return np.argsort(-np.asarray(values, np.float64), kind="stable")[:k]
