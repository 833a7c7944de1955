"""Which policies differ when they are compared on the same sessions, corrected for the number of comparisons."""

from preplay.report._curves import Difference
from preplay.report._schema import EvaluationReport


def against_the_highest(report: EvaluationReport) -> list[Difference]:
    """The pairs of the policy that is higher in each of its pairs, smallest difference first."""
    below = {pair.other for pair in report.differences}
    top = next((pair.better for pair in report.differences if pair.better not in below), None)
    return sorted((p for p in report.differences if p.better == top), key=lambda pair: pair.difference)


def only_bounds(report: EvaluationReport, pair: Difference) -> bool:
    """Whether one of the two policies has no estimate: then their difference has none either."""
    judged = {policy.name for policy in report.policies if policy.headline.verdict == "estimate"}
    return not {pair.better, pair.other} <= judged


def is_clear(pair: Difference) -> bool:
    """Whether the interval that holds for all pairs at once leaves zero out."""
    return pair.simultaneous.low > 0


def pair_of(report: EvaluationReport, one: str, two: str) -> Difference | None:
    """The pair of two policies, in either order."""
    return next((p for p in report.differences if {p.better, p.other} == {one, two}), None)


def sentence(report: EvaluationReport) -> str:
    """What was compared, how it was corrected, and how many pairs differ."""
    if not report.differences:
        return ""
    if report.differences[0].interval.method == "backtest":
        said = "Differences with the errors that left-out policies taught, those of two policies taken as independent"
    else:
        said = "Differences on the same sessions and resamples: what moves both policies alike cancels"
    return (
        f"{said}, so that two policies may differ clearly although their intervals overlap. {_found(report)}"
    )


def _found(report: EvaluationReport) -> str:
    pairs = len(report.differences)
    judged = [pair for pair in report.differences if not only_bounds(report, pair)]
    clear = sum(map(is_clear, judged))
    if not judged:
        return "Only bounds are known of each." if pairs > 1 else "Only bounds are known."
    if pairs == 1:
        return "The two policies differ." if clear else "The two policies cannot be told apart."
    of = "them" if len(judged) == pairs else f"{len(judged)} between policies with an estimate"
    return f"Corrected for all {pairs} pairs, {clear or 'none'} of {of} differ{'s' * (clear == 1)} clearly."
