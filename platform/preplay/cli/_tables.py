"""Tables for the terminal beside the headline: every estimator per policy, and each against the truth."""

from rich.table import Table

from preplay.estimators import Estimate
from preplay.report import EvaluationReport


def estimates_table(report: EvaluationReport) -> Table:
    """One row per policy, one column per estimator; numbers as the formulas gave them."""
    table = Table(title="All estimators, before any verdict")
    table.add_column("policy")
    known = any(policy.truth for policy in report.policies)
    if known:
        table.add_column("truth", justify="right")
    for estimate in report.policies[0].estimates:
        table.add_column(estimate.estimator.rsplit("/", 1)[0], justify="right")
    for policy in report.policies:
        truth = [f"{policy.truth.value:+.2f}" if policy.truth else "-"] if known else []
        table.add_row(policy.name, *truth, *map(_number, policy.estimates))
    return table


def ranking_table(report: EvaluationReport) -> Table:
    """Error, rank correlation and regret of each estimator over the policies whose truth is known."""
    table = Table(title=f"Against the truth of {report.ranking[0].policies} policies")
    for column in ("estimator", "error / range of the truths", "Spearman", "regret of its choice"):
        table.add_column(column, justify="left" if column == "estimator" else "right")
    for row in report.ranking:
        spearman = "-" if row.spearman is None else f"{row.spearman:.2f}"
        table.add_row(row.estimator, f"{row.mae_share:.3f}", spearman, f"{row.regret_at_1:.3f}")
    return table


def _number(estimate: Estimate) -> str:
    return "-" if estimate.raw_value is None else f"{estimate.raw_value:+.2f}"
