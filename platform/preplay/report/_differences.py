"""Which policies differ when they are compared on the same sessions, corrected for the number of comparisons."""

from preplay.report._curves import Difference
from preplay.report._schema import EvaluationReport


def against_the_highest(report: EvaluationReport) -> list[Difference]:
    """The pairs of the policy that is higher in each of its pairs, smallest difference first."""
    below = {pair.other for pair in report.differences}
    top = next((pair.better for pair in report.differences if pair.better not in below), None)
    return sorted((p for p in report.differences if p.better == top), key=lambda pair: pair.difference)


def is_clear(pair: Difference) -> bool:
    """Whether the interval that holds for all pairs at once leaves zero out."""
    return pair.simultaneous.low > 0


def pair_of(report: EvaluationReport, one: str, two: str) -> Difference | None:
    """The pair of two policies, in either order."""
    return next((p for p in report.differences if {p.better, p.other} == {one, two}), None)


def sentence(report: EvaluationReport) -> str:
    """What was compared, how it was corrected, and how many pairs differ."""
    pairs = len(report.differences)
    if not pairs:
        return ""
    clear = sum(map(is_clear, report.differences))
    said = (
        "Differences on the same sessions and resamples: what moves both policies alike cancels, so that two "
    )
    said += "policies may differ clearly although their intervals overlap. "
    if pairs == 1:
        return said + ("The two policies differ." if clear else "The two policies cannot be told apart.")
    return f"{said}Corrected for all {pairs} pairs, {clear or 'none'} of them differ{'s' * (clear == 1)} clearly."
