"""From scores to thresholds: risk against coverage, and a threshold whose risk is bounded with stated confidence."""

from dataclasses import dataclass

import numpy as np
from scipy.stats import beta

from preplay.errors import PreplayError


@dataclass(frozen=True)
class RiskCoverage:
    """Error of the answered decisions at each share answered, most confident first: float64 [N] each."""

    coverage: np.ndarray
    risk: np.ndarray

    @property
    def area(self) -> float:
        """Area under the curve: mean risk over all coverages; lower is better."""
        return float(self.risk.mean())


@dataclass(frozen=True)
class Threshold:
    """Answer where the confidence is at least ``value`` (inf: never).

    With probability 1 - ``delta`` over calibration sets, the risk of what is answered is at most ``target_risk``;
    ``risk`` and ``coverage`` are those of the calibration set, ``bound`` the upper confidence bound of the risk.
    """

    value: float
    target_risk: float
    delta: float
    risk: float
    bound: float
    coverage: float


def risk_coverage(confidence: np.ndarray, correct: np.ndarray) -> RiskCoverage:
    """The risk-coverage curve of decisions (float64 [N], bool [N])."""
    order = np.argsort(-confidence, kind="stable")
    answered = np.arange(1, len(order) + 1)
    return RiskCoverage(answered / len(order), np.cumsum(~correct[order]) / answered)


def calibrate_threshold(
    confidence: np.ndarray, correct: np.ndarray, *, target_risk: float, delta: float = 0.1, steps: int = 20
) -> Threshold:
    """The lowest threshold whose risk is bounded: fixed-sequence testing (Learn then Test, Angelopoulos 2021).

    Thresholds at falling quantiles of the confidence are tested one after the other, each by the exact binomial bound
    (Clopper-Pearson) at level ``delta``; the last one before the first failure is taken, so no correction is needed.
    Decisions must be independent of each other: give one per task.
    """
    if not 0 < target_risk < 1 or not 0 < delta < 1:
        raise PreplayError(f"target risk {target_risk} and delta {delta} must lie between 0 and 1.")
    finite = np.where(np.isfinite(confidence), confidence, -np.inf)
    best = Threshold(np.inf, target_risk, delta, 0.0, 0.0, 0.0)
    for share in np.linspace(1 / steps, 1.0, steps):
        value = float(np.quantile(finite, 1 - share, method="lower")) if len(finite) else np.inf
        answered = finite >= value
        errors, count = int((~correct[answered]).sum()), int(answered.sum())
        bound = upper_bound(errors, count, delta)
        if bound > target_risk:
            if count * target_risk >= 3:  # enough of them for the bound to say something
                break
            continue
        best = Threshold(value, target_risk, delta, errors / count, bound, count / len(finite))
    return best


def upper_bound(errors: int, count: int, delta: float) -> float:
    """Exact upper confidence bound of an error rate: 1 where nothing was seen."""
    return 1.0 if errors >= count else float(beta.ppf(1 - delta, errors + 1, count - errors))
