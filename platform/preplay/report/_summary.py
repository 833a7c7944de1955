"""The result in plain words: which policy is best, how sure that is, which cannot be judged and why."""

from collections.abc import Sequence

import numpy as np

from preplay.report._numbers import ValueFormat, format_for, share
from preplay.report._schema import EvaluationReport, Interval, PolicyResult

_ORDER = ("estimate", "bounds only", "not identified")


def ranked(report: EvaluationReport) -> list[PolicyResult]:
    """Policies with an estimate from best to worst, then those with bounds only, then the refused ones."""
    return sorted(report.policies, key=lambda p: (_ORDER.index(p.headline.verdict), -_middle(p)))


def summary_sentence(report: EvaluationReport) -> str:
    """The whole summary as one paragraph."""
    return " ".join(summary_sentences(report))


def summary_sentences(report: EvaluationReport) -> list[str]:
    """The verdict first, then what is only bounded, what is refused, and how far the truth is."""
    fmt = format_for(report)
    groups = {verdict: [p for p in ranked(report) if p.headline.verdict == verdict] for verdict in _ORDER}
    judged, bounded, refused = groups.values()
    return [
        *(_best(judged, report, fmt) if judged else _nothing(report)),
        *(_bounded(policy, fmt) for policy in bounded),
        *(_refused(refused) if judged or bounded else []),
        *_against_truth(judged, fmt),
    ]


def _middle(policy: PolicyResult) -> float:
    headline = policy.headline
    if headline.verdict != "bounds only" and headline.value is not None:
        return headline.value
    interval = headline.interval or Interval()
    edges = [edge for edge in (interval.low, interval.high) if edge is not None]
    return sum(edges) / len(edges) if edges else -np.inf


def _nothing(report: EvaluationReport) -> list[str]:
    if not report.policies:
        return ["No policy was evaluated."]
    if any(policy.headline.verdict == "bounds only" for policy in report.policies):
        return ["No policy can be given a value from these logs."]
    if len(report.policies) == 1:
        only = report.policies[0]
        return [f"{only.name} cannot be judged from these logs: {_ended(only.headline.reason)}"]
    reasons = [f"{policy.name}: {_ended(policy.headline.reason)}" for policy in report.policies]
    return [f"None of the {len(reasons)} policies can be judged from these logs.", *reasons]


def _best(judged: list[PolicyResult], report: EvaluationReport, fmt: ValueFormat) -> list[str]:
    best, *rest = judged
    ties = [policy.name for policy in rest if _overlap(best.headline.interval, policy.headline.interval)]
    worth = (
        f"{fmt.value(best.headline.value)} a session{_certainty(best, fmt)}{_beside_logs(best, report, fmt)}"
    )
    if not rest:
        return [f"{best.name} is worth {worth}."]
    if len(ties) == len(rest):
        return [
            f"No best policy can be named: the intervals of {_names([best.name, *ties])} overlap.",
            f"{best.name} comes out highest with {worth}.",
        ]
    first = f"{best.name} is the best of {len(judged)} policies with {worth}."
    return (
        [first, f"{_names(ties)} cannot be told apart from it: their intervals overlap."] if ties else [first]
    )


def _certainty(policy: PolicyResult, fmt: ValueFormat) -> str:
    interval = policy.headline.interval
    if interval is None:
        return ""
    return f" ({share(interval.level)} interval {fmt.interval(interval)})"


def _beside_logs(policy: PolicyResult, report: EvaluationReport, fmt: ValueFormat) -> str:
    """How the value compares with what the logged sessions earned, as far as the interval says."""
    logged, interval = report.logged_mean, policy.headline.interval
    if logged is None or interval is None:
        return ""
    earned = f"{fmt.value(logged)} that the logged sessions earned"
    if interval.low is not None and interval.low > logged:
        return f", more than the {earned}"
    if interval.high is not None and interval.high < logged:
        return f", less than the {earned}"
    return f", not clearly different from the {earned}"


def _bounded(policy: PolicyResult, fmt: ValueFormat) -> str:
    return f"For {policy.name} only bounds are known ({fmt.interval(policy.headline.interval)}): " + _ended(
        policy.headline.reason
    )


def _refused(refused: list[PolicyResult]) -> list[str]:
    return [f"{policy.name} cannot be judged: {_ended(policy.headline.reason)}" for policy in refused]


def _against_truth(judged: list[PolicyResult], fmt: ValueFormat) -> list[str]:
    """Said only when the truth is known for each policy that got an estimate."""
    pairs = [(p, p.headline.value, p.truth.value) for p in judged if p.truth and p.headline.value is not None]
    if not pairs or len(pairs) < len(judged):
        return []
    error = float(np.mean([abs(value - truth) for _, value, truth in pairs]))
    inside = sum(_contains(policy.headline.interval, truth) for policy, _, truth in pairs)
    off = f"the estimates are off by {fmt.value(error)} on average"
    held = f"{inside} of {len(pairs)} intervals contain it"
    if len(pairs) == 1:
        return [f"The truth is {fmt.value(pairs[0][2])}, {'inside' if inside else 'outside'} the interval."]
    best = max(pairs, key=lambda pair: pair[2])[0]
    right = f"{best.name} is best" if best is judged[0] else f"the best of them is {best.name}"
    return [f"The truth is known: {right}, {off}, and {held}."]


def _overlap(a: Interval | None, b: Interval | None) -> bool:
    """Two policies whose intervals overlap, or that have none, count as not told apart."""
    if a is None or b is None:
        return True
    return _low(a) <= _high(b) and _low(b) <= _high(a)


def _contains(interval: Interval | None, value: float) -> bool:
    return interval is not None and _low(interval) <= value <= _high(interval)


def _low(interval: Interval) -> float:
    return -np.inf if interval.low is None else interval.low


def _high(interval: Interval) -> float:
    return np.inf if interval.high is None else interval.high


def _names(names: Sequence[str]) -> str:
    """``a``, ``a and b``, ``a, b and c`` or ``a, b and 4 others``."""
    if len(names) > 4:
        names = [*names[:2], f"{len(names) - 2} others"]
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def _ended(reason: str) -> str:
    return reason if reason.endswith((".", "!", "?")) else f"{reason}."
