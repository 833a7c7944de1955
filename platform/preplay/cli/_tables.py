"""Tables for the terminal beside the headline: every estimator per policy, and each against the truth."""

import json

from rich.table import Table
from rich.text import Text

from preplay.estimators import Estimate
from preplay.pipeline import ShadowResult
from preplay.report import EvaluationReport

MOST_COLUMNS = 4
MAIN = ("model.dm", "model.wdr", "model.blend", "fqe.dm")
"""The estimators shown where there are too many for a terminal; the report has all of them."""


def estimates_table(report: EvaluationReport) -> Table:
    """One row per policy, one column per estimator; numbers as the formulas gave them."""
    names = [estimate.estimator for estimate in report.policies[0].estimates]
    if len(names) > MOST_COLUMNS:
        names = [name for name in names if name.rsplit("/", 1)[0] in MAIN]
    table = Table(title="Estimators side by side, before any verdict")
    table.add_column("policy")
    known = any(policy.truth for policy in report.policies)
    if known:
        table.add_column("truth", justify="right")
    for name in names:
        table.add_column(name.rsplit("/", 1)[0], justify="right")
    for policy in report.policies:
        truth = [f"{policy.truth.value:+.2f}" if policy.truth else "-"] if known else []
        shown = [_number(e) for e in policy.estimates if e.estimator in names]
        table.add_row(policy.name, *truth, *shown)
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


def shadow_table(result: ShadowResult, policy: str) -> Table:
    """One row per estimator of a policy that is known by its shadow actions."""
    table = Table(
        title=Text(
            f"{policy}, judged by what it would do in the states of {result.sessions} logged sessions"
        ),
        caption=f"It would have taken {result.agreement:.0%} of the logged actions.",
    )
    for column in ("estimator", "value", "interval", "verdict"):
        table.add_column(column, justify="right" if column in ("value", "interval") else "left")
    for estimate in result.estimates:
        value = "-" if estimate.value is None else f"{estimate.value:+.3f}"
        low, high = estimate.interval.low, estimate.interval.high
        shown = "-" if estimate.verdict == "not identified" else f"{low:+.3f} to {high:+.3f}"
        verdict = ": ".join(filter(None, (estimate.verdict, estimate.reason)))
        table.add_row(estimate.estimator.rsplit("/", 1)[0], value, shown, verdict)
    return table


def shadow_json(result: ShadowResult) -> bytes:
    """The same as JSON."""
    found = {
        "sessions": result.sessions,
        "agreement": result.agreement,
        "estimates": [estimate.model_dump(mode="json") for estimate in result.estimates],
    }
    return json.dumps(found, indent=2).encode()


def _number(estimate: Estimate) -> str:
    return "-" if estimate.raw_value is None else f"{estimate.raw_value:+.2f}"
