"""The verdict: whether the logs can answer the question at all, why, and what would help.

Thresholds were set on the coverage simulation (``python -m benchmarks.coverage``), not on any one log.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from preplay.estimators._diagnostics import MassBalance, OnPolicyCheck
from preplay.estimators._results import VerdictKind


@dataclass(frozen=True)
class Verdict:
    """Whether the number may be used, why in one sentence, and what would help."""

    kind: VerdictKind
    reason: str
    fix: str | None = None


@dataclass(frozen=True)
class Evidence:
    """What is known besides the estimate; None where nothing is.

    Args:
        share_beyond: Share of the target's (state, action) pairs that no logged pair is near
            (``support_coverage``).
        unsupported_cells: Share of the target's (stage, action class) cells that no logged policy ever
            enters.
        shift_auc: AUC of a classifier that tells the target's first actions from the logged ones.
        on_policy: Check of the model on the logging policy itself.
        fqe_converged: Whether fitted Q evaluation settled.
        propensity_error: Expected calibration error of estimated propensities.
    """

    share_beyond: float | None = None
    unsupported_cells: float | None = None
    shift_auc: float | None = None
    on_policy: OnPolicyCheck | None = None
    fqe_converged: bool | None = None
    propensity_error: float | None = None


@dataclass(frozen=True)
class Thresholds:
    """Where the verdict turns."""

    missing_mass: float = 0.2
    """Target mass that the logs lack beyond chance: not identified."""
    some_missing_mass: float = 0.02
    """The same: bounds only."""
    share_beyond: float = 0.5
    """Target pairs beyond the logged radius: not identified."""
    some_share_beyond: float = 0.2
    """The same: bounds only."""
    unsupported_cells: float = 0.35
    shift_auc: float = 0.8
    ess: float = 50.0
    """Effective sessions needed for an interval that keeps its level."""
    largest_share: float = 0.1
    pareto_k: float = 0.7
    degrees_of_freedom: float = 25.0
    propensity_error: float = 0.05


@dataclass(frozen=True)
class Findings:
    """What the numbers say, to be judged."""

    value: float
    n_sessions: int
    ess: float
    largest_share: float
    log_largest: float
    mass: MassBalance
    pareto_k: float
    degrees_of_freedom: float
    bounded: bool
    evidence: Evidence = field(default_factory=Evidence)


_COLLECT = "Collect sessions of the target policy, or of one closer to it (see the collection plan)."
_WITHIN = "Read the bounds, or collect more sessions of a policy closer to the target."


def decide(findings: Findings, limits: Thresholds | None = None) -> Verdict:
    """The first reason against the estimate, the gravest kind first."""
    limits = limits or Thresholds()
    for check in (_undefined, _unsupported, _bounded_only):
        for verdict in check(findings, limits):
            return verdict
    f = findings
    return Verdict("estimate", f"{f.ess:.0f} of {f.n_sessions} sessions' worth of weight carry the estimate.")


Check = Callable[[Findings, Thresholds], Iterator[Verdict]]


def _undefined(f: Findings, limits: Thresholds) -> Iterator[Verdict]:
    if math.isinf(f.log_largest):
        yield Verdict("not identified", "The target policy never takes the logged actions.", _COLLECT)
    elif not math.isfinite(f.value) and f.log_largest > 700:
        yield Verdict(
            "not identified",
            f"The largest importance weight is e^{f.log_largest:.0f}, more than a number can hold.",
            "Use a self-normalised or doubly robust estimator, or collect shorter or closer sessions.",
        )
    elif not math.isfinite(f.value):
        yield Verdict(
            "not identified",
            "At some step no logged session still acts as the target policy could.",
            _COLLECT,
        )


def _unsupported(f: Findings, limits: Thresholds) -> Iterator[Verdict]:
    e, mass = f.evidence, f.mass
    if mass.missing_at_least > limits.missing_mass:
        reason = (
            f"The weights add up to {mass.covered:.0%} at turn {mass.step}: at least "
            f"{mass.missing_at_least:.0%} of what the target does there is not in the logs."
        )
        yield Verdict("not identified", reason, _COLLECT)
    if e.share_beyond is not None and e.share_beyond > limits.share_beyond:
        reason = f"{e.share_beyond:.0%} of the target's actions are unlike anything logged in such a state."
        yield Verdict("not identified", reason, _COLLECT)
    if e.unsupported_cells is not None and e.unsupported_cells > limits.unsupported_cells:
        reason = f"{e.unsupported_cells:.0%} of the target's (stage, action class) cells were never logged."
        yield Verdict("not identified", reason, _COLLECT)
    if e.shift_auc is not None and e.shift_auc > limits.shift_auc:
        reason = (
            f"A classifier tells the target's first actions from the logged ones (AUC {e.shift_auc:.2f})."
        )
        yield Verdict("not identified", reason, _COLLECT)


def _bounded_only(f: Findings, limits: Thresholds) -> Iterator[Verdict]:
    e = f.evidence
    if f.n_sessions < 2:
        yield Verdict("bounds only", "One session tells nothing about the spread of sessions.", _WITHIN)
    if f.ess < limits.ess:
        yield Verdict(
            "bounds only", f"Only {f.ess:.1f} of {f.n_sessions} sessions carry the weight.", _WITHIN
        )
    if f.largest_share > limits.largest_share:
        yield Verdict("bounds only", f"One session carries {f.largest_share:.0%} of the weight.", _WITHIN)
    if f.pareto_k > limits.pareto_k:
        yield Verdict("bounds only", f"The weights' tail is too heavy (Pareto k {f.pareto_k:.2f}).", _WITHIN)
    if f.mass.missing_at_least > limits.some_missing_mass:
        reason = f"At least {f.mass.missing_at_least:.0%} of what the target does is not in the logs."
        yield Verdict("bounds only", reason, _WITHIN)
    if e.share_beyond is not None and e.share_beyond > limits.some_share_beyond:
        reason = f"{e.share_beyond:.0%} of the target's actions are far from what was logged."
        yield Verdict("bounds only", reason, _WITHIN)
    yield from _model_faults(e, limits)
    if f.degrees_of_freedom < limits.degrees_of_freedom or not f.bounded:
        reason = f"A few sessions decide the spread (as if {f.degrees_of_freedom:.0f} had been logged)."
        yield Verdict("bounds only", reason, _WITHIN)


def _model_faults(e: Evidence, limits: Thresholds) -> Iterator[Verdict]:
    if e.on_policy is not None and not e.on_policy.passed:
        said, seen = e.on_policy.predicted, e.on_policy.observed
        reason = f"The model puts the logging policy at {said:.3g}, but its sessions returned {seen:.3g}."
        yield Verdict("bounds only", reason, "Train longer, add features, or trust the weighted estimators.")
    if e.fqe_converged is False:
        yield Verdict(
            "bounds only", "Fitted Q evaluation did not settle.", "Give it more iterations or data."
        )
    if e.propensity_error is not None and e.propensity_error > limits.propensity_error:
        reason = f"Estimated propensities are off by {e.propensity_error:.0%} on average."
        yield Verdict("bounds only", reason, "Log the propensities, or use fewer action clusters.")
