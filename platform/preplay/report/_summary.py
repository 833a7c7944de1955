"""The result in plain words: which policy is best, how sure that is, which cannot be judged and why."""

from collections.abc import Sequence

import numpy as np

from preplay.estimators import Interval
from preplay.report._differences import is_clear, pair_of
from preplay.report._numbers import ValueFormat, format_for, share
from preplay.report._schema import EvaluationReport, PolicyResult

_ORDER = ("estimate", "bounds only", "not identified")
_MOST = 2
"""Policies without an estimate that are explained one by one."""


def ranked(report: EvaluationReport) -> list[PolicyResult]:
    """Policies with an estimate from best to worst, then those with bounds only, then the refused ones."""
    return sorted(report.policies, key=lambda p: (_ORDER.index(p.headline.verdict), -_middle(p)))


def summary_sentence(report: EvaluationReport) -> str:
    """The whole summary as one paragraph."""
    return " ".join(summary_sentences(report))


def summary_sentences(report: EvaluationReport) -> list[str]:
    """The verdict first, then what is only bounded, what is refused, and how far the truth is."""
    fmt = format_for(report)
    groups = {kind: [p for p in ranked(report) if p.headline.verdict == kind] for kind in _ORDER}
    judged, bounded, refused = groups.values()
    return [
        *(_best(judged, report, fmt) if judged else _nothing(report.policies)),
        *_bounded(bounded, fmt),
        *_refused(refused),
        *_against_truth(judged, fmt),
        *(tested.sentence() for tested in report.backtests),
        *_solved_shares(report.policies),
    ]


def _middle(policy: PolicyResult) -> float:
    """The value to sort by; that of bounds is their middle."""
    headline = policy.headline
    if headline.verdict == "estimate" and headline.value is not None:
        return headline.value
    middle = (headline.interval.low + headline.interval.high) / 2
    return middle if np.isfinite(middle) else -np.inf


def _nothing(policies: Sequence[PolicyResult]) -> list[str]:
    if len(policies) > 1:
        return [f"None of the {len(policies)} policies can be given a value from these logs."]
    return [] if policies else ["No policy was evaluated."]


def _best(judged: list[PolicyResult], report: EvaluationReport, fmt: ValueFormat) -> list[str]:
    best, *rest = judged
    ties = [policy for policy in rest if _tied(best, policy, report)]
    worth = f"{fmt.value(best.headline.value)} a session ({share(best.headline.interval.level)} interval "
    worth += f"{_range(best, fmt)}){_beside_logs(best, report, fmt)}."
    if not rest:
        return [f"{_quoted(best)} is worth {worth}"]
    if not ties:
        return [f"{_quoted(best)} is the best of {_count(judged, report)}: {worth}"]
    said = f"{_quoted(best)} comes out highest of {_count(judged, report)}: {worth}"
    paired = all(pair_of(report, best.name, policy.name) for policy in rest)
    if len(ties) == len(rest) > 1:
        why = (
            "none differs clearly from the highest" if paired else "all intervals overlap that of the highest"
        )
        return [f"No best policy can be named: {why}.", said]
    why = "the difference may be zero" if paired else "the intervals overlap"
    return [said, f"{_names(ties)} cannot be told apart from it: {why}."]


def _bounded(policies: list[PolicyResult], fmt: ValueFormat) -> list[str]:
    if len(policies) > _MOST:
        return [f"For {_names(policies)} only bounds are known."]
    return [f"For {_quoted(p)} only bounds are known ({_range(p, fmt)}): {_reason(p)}" for p in policies]


def _refused(policies: list[PolicyResult]) -> list[str]:
    if len(policies) > _MOST:
        return [f"{_names(policies)} cannot be judged, the first because: {_reason(policies[0])}"]
    return [f"{_quoted(p)} cannot be judged: {_reason(p)}" for p in policies]


def _solved_shares(policies: Sequence[PolicyResult]) -> list[str]:
    """Said where shares of solved sessions have another unit than the values above."""
    shares = [p.structured for p in policies if p.structured]
    shown = {e.policy for p in policies for e in p.estimates if e.estimator.startswith("structure/")}
    return [found.sentence() for found in shares if found.policy not in shown]


def _count(judged: list[PolicyResult], report: EvaluationReport) -> str:
    if len(judged) == len(report.policies):
        return f"{len(judged)} policies"
    return f"the {len(judged)} policies that can be judged"


def _beside_logs(policy: PolicyResult, report: EvaluationReport, fmt: ValueFormat) -> str:
    """How the value compares with what the logged sessions earned, as far as the interval says."""
    logged, interval = report.logged_mean, policy.headline.interval
    if logged is None:
        return ""
    earned = f"{fmt.value(logged)} that the logged sessions earned"
    if interval.contains(logged):
        return f", not clearly different from the {earned}"
    return f", {'more' if interval.low > logged else 'less'} than the {earned}"


def _against_truth(judged: list[PolicyResult], fmt: ValueFormat) -> list[str]:
    """Said only when the truth is known for each policy that got an estimate."""
    known = [(p, p.headline.value, p.truth.value) for p in judged if p.truth and p.headline.value is not None]
    if not known or len(known) < len(judged):
        return []
    inside = sum(policy.headline.interval.contains(truth) for policy, _, truth in known)
    if len(known) == 1:
        return [f"The truth is {fmt.value(known[0][2])}, {'inside' if inside else 'outside'} the interval."]
    best = max(known, key=lambda row: row[2])[0]
    right = "it is indeed the best" if best is judged[0] else f"{_quoted(best)} is the best of them"
    error = float(np.mean([abs(value - truth) for _, value, truth in known]))
    off = f"the estimates are off by {fmt.value(error)} on average"
    return [f"The truth is known: {right}, {off}, and {inside} of {len(known)} intervals contain it."]


def _tied(best: PolicyResult, other: PolicyResult, report: EvaluationReport) -> bool:
    """By the paired difference, corrected for all pairs; by overlap of the intervals where there is none."""
    pair = pair_of(report, best.name, other.name)
    if pair is not None:
        return not (is_clear(pair) and pair.better == best.name)
    return _overlap(best.headline.interval, other.headline.interval)


def _overlap(a: Interval, b: Interval) -> bool:
    return a.low <= b.high and b.low <= a.high


def _range(policy: PolicyResult, fmt: ValueFormat) -> str:
    return fmt.interval(policy.headline.interval)


def _quoted(policy: PolicyResult) -> str:
    return f"“{policy.name}”"


def _names(policies: Sequence[PolicyResult]) -> str:
    """``a``, ``a and b``, ``a, b and c`` or ``a, b and 4 others``."""
    names = [_quoted(policy) for policy in policies]
    if len(names) > 4:
        names = [*names[:2], f"{len(names) - 2} others"]
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def _reason(policy: PolicyResult) -> str:
    reason = policy.headline.reason
    return reason if reason.endswith((".", "!", "?")) else f"{reason}."
