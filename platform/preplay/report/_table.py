"""The result as a table for the terminal."""

from rich import box
from rich.table import Table
from rich.text import Text

from preplay.report._differences import against_the_highest, only_bounds, sentence
from preplay.report._numbers import UNKNOWN, ValueFormat, format_for, p_value
from preplay.report._schema import EvaluationReport, PolicyResult
from preplay.report._summary import ranked

_STYLE = {"estimate": "green", "bounds only": "yellow", "not identified": "red"}


def compare_table(report: EvaluationReport) -> Table:
    """One row per policy, best first; the truth and the error when the truth is known. Fits 80 columns."""
    fmt, with_truth = format_for(report), any(policy.truth for policy in report.policies)
    table = Table(title=Text(report.title), caption=_caption(report, fmt), box=box.SIMPLE_HEAD)
    table.add_column("policy", overflow="fold")
    for title in ["value", "interval"] + ["truth", "error"] * with_truth:
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    for policy in ranked(report):
        table.add_row(*_row(policy, fmt, with_truth))
    return table


def differences_table(report: EvaluationReport) -> Table:
    """The highest policy against each other that has an estimate. Fits 80 columns."""
    fmt, pairs = format_for(report), against_the_highest(report)
    title = Text(f"“{pairs[0].better}” minus the others" if pairs else "No differences")
    table = Table(title=title, caption=Text(sentence(report)), box=box.SIMPLE_HEAD)
    table.add_column("other policy", overflow="fold")
    for name in ("difference", "interval for all at once", "p, corrected"):
        table.add_column(name, justify="right", no_wrap=True)
    for pair in pairs:
        numbers = [fmt.difference(pair.difference), p_value(pair.adjusted_p_value)]
        shown, p = [UNKNOWN, UNKNOWN] if only_bounds(report, pair) else numbers
        table.add_row(Text(pair.other), shown, fmt.interval(pair.simultaneous), p)
    return table


def _row(policy: PolicyResult, fmt: ValueFormat, with_truth: bool) -> list[Text]:
    """Cells are ``Text``, so that names with square brackets are not read as markup."""
    headline, kind = policy.headline, policy.headline.verdict
    value = headline.value if kind == "estimate" else None
    shown = UNKNOWN if kind == "not identified" else fmt.interval(headline.interval)
    cells = [policy.name, fmt.value(value), shown]
    if with_truth:
        cells += _truth_cells(policy, value, fmt)
    return [*map(Text, cells), Text(kind, style=_STYLE[kind])]


def _truth_cells(policy: PolicyResult, value: float | None, fmt: ValueFormat) -> list[str]:
    if policy.truth is None:
        return [UNKNOWN, UNKNOWN]
    error = None if value is None else value - policy.truth.value
    return [fmt.value(policy.truth.value), fmt.difference(error)]


def _caption(report: EvaluationReport, fmt: ValueFormat) -> Text:
    names = dict.fromkeys(policy.headline.estimator for policy in report.policies)
    logged = report.logged_mean
    earned = "" if logged is None else f"; the logged sessions earned {fmt.value(logged)} on average"
    return Text(f"by {', '.join(names)}{earned}")
