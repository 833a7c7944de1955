"""Which number leads: the doubly robust one where propensities exist, else model and FQE held against each other."""

import math
from dataclasses import dataclass

from scipy.stats import norm

from preplay.estimators import Estimate, Interval

MAX_BEYOND = 0.35
"""Share of imagined turns outside the logs' support above which nothing is said (measured on real logs)."""


@dataclass(frozen=True)
class ModelEvidence:
    """What bears on trust in the world model.

    Args:
        bias: |imagined - logged| value of the logging policies' own behaviour on held-out sessions.
        beyond: Share of the policy's imagined turns outside the logs' support.
        spread: Standard deviation of the logged returns.
    """

    bias: float
    beyond: float
    spread: float


def choose_headline(
    estimates: dict[str, Estimate], evidence: ModelEvidence, level: float, tested: Estimate | None = None
) -> Estimate:
    """The estimate to lead with.

    With propensities: weighted doubly robust on the world model, whose interval was tested for coverage.
    Without: the estimate that backtests on these logs ``tested``, with the interval and the limits they taught.
    Without either: the mean of world model and FQE as bounds that include their disagreement and the model's bias;
    refused when the policy leaves the logs' support or the bounds are as wide as the returns themselves.
    """
    if "model.wdr" in estimates:
        return estimates["model.wdr"]
    if tested:
        return tested
    model, fqe = estimates["model.dm"], estimates["fqe.dm"]
    assert model.raw_value is not None
    assert fqe.raw_value is not None
    value = (model.raw_value + fqe.raw_value) / 2
    sampling = max(model.standard_error or math.inf, fqe.standard_error or math.inf)
    epistemic = math.hypot((model.raw_value - fqe.raw_value) / 2, evidence.bias, model.epistemic_error or 0.0)
    half = float(norm.ppf((1 + level) / 2)) * math.hypot(sampling, epistemic)
    interval = Interval(low=value - half, high=value + half, level=level, method="model and FQE")
    refusal = _refusal(evidence, half)
    return model.model_copy(
        update={
            "estimator": "model+fqe/1",
            "value": None if refusal else value,
            "raw_value": value,
            "standard_error": sampling,
            "epistemic_error": epistemic,
            "interval": interval,
            "verdict": "not identified" if refusal else "bounds only",
            "reason": refusal or "The logs hold no propensities, so model error cannot be corrected.",
            "fix": "Log the probability of each action, or collect some sessions of the policy itself.",
            "diagnostics": {"beyond_support": evidence.beyond, "on_policy_bias": evidence.bias},
        }
    )


def _refusal(evidence: ModelEvidence, half: float) -> str | None:
    if evidence.beyond > MAX_BEYOND:
        return f"{evidence.beyond:.0%} of what the policy does lies outside what the logs show."
    if half > evidence.spread:
        return "World model and FQE disagree as much as sessions differ from each other."
    return None
