"""The page: Jinja templates filled from the report alone, everything inline, nothing loaded from anywhere."""

import base64
import hashlib
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import BaseLoader, ChoiceLoader, Environment, PackageLoader, PrefixLoader, StrictUndefined
from markupsafe import Markup

from preplay.report import _charts, _differences, _numbers, _plots
from preplay.report._schema import BehaviorPolicy, EvaluationReport, PolicyResult
from preplay.report._summary import ranked, summary_sentences

_LONG = 600
"""Characters of a text that are shown before the rest folds away."""


def render_html(report: EvaluationReport) -> str:
    """One self-contained page. Texts from logs are escaped everywhere, in the embedded data too."""
    script = viewer_script()
    return _render(
        "report.html.j2",
        report,
        style=Markup(style_sheet()),
        script=Markup(script),
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        data=_inert(report.model_dump_json()),
    )


def render_body(report: EvaluationReport) -> Markup:
    """Navigation and sections for a page that brings ``style_sheet`` and ``viewer_script`` itself."""
    return Markup(_render("body.html.j2", report))


def render_facts(report: EvaluationReport) -> Markup:
    """The list of facts under the title, for the same page."""
    return Markup(_render("facts.html.j2", report))


def style_sheet() -> str:
    """CSS of the report."""
    return _asset("style.css")


def viewer_script() -> str:
    """JavaScript of the viewer of imagined sessions; the report can be read without it."""
    return _asset("viewer.js")


def _render(template: str, report: EvaluationReport, **extra: Any) -> str:
    fmt = _numbers.format_for(report)
    policies = ranked(report)
    return (
        _environment()
        .get_template(template)
        .render(
            report=report,
            policies=policies,
            sentences=summary_sentences(report),
            fmt=fmt,
            forest=_plots.forest_axis(report),
            check=_plots.check_axis(report),
            estimators=_estimator_ids(policies),
            ranking=_by_estimator(report.ranking),
            tops=_tops(report),
            charts=[(policy.name, _charts.policy_charts(policy, report, fmt)) for policy in policies],
            reliability=_charts.reliability_chart(report.propensities) if report.propensities else None,
            top_differences=_differences.against_the_highest(report),
            only_bounds=_differences.only_bounds,
            difference_sentence=_differences.sentence(report),
            **extra,
        )
    )


def page_environment(package: str) -> Environment:
    """For other pages that look like the report: templates of ``package``, and the report's own under ``report/``."""
    own = PrefixLoader({"report": PackageLoader("preplay.report")})
    return _environment_of(ChoiceLoader([PackageLoader(package), own]))


@cache
def _environment() -> Environment:
    return _environment_of(PackageLoader("preplay.report"))


def _environment_of(loader: BaseLoader) -> Environment:
    environment = Environment(
        loader=loader,
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "plain": _numbers.plain,
        "brief": _numbers.brief,
        "share": _numbers.share,
        "fixed": _numbers.fixed,
        "p_value": _numbers.p_value,
        "agreement": _agreement,
        "by_estimator": _by_estimator,
    }
    environment.globals |= {"spark_path": _plots.spark_path, "top_of": _plots.top_of, "long": _LONG}
    return environment


def _asset(name: str) -> str:
    return files("preplay.report").joinpath("templates", name).read_text(encoding="utf-8")


def _inert(data: str) -> Markup:
    """JSON that cannot end its script element: <, > and & occur only inside JSON strings."""
    for character in "<>&":
        data = data.replace(character, f"\\u{ord(character):04x}")
    return Markup(data)


def _by_estimator(rows: Sequence[Any]) -> dict[str, Any]:
    return {row.estimator: row for row in rows}


def _estimator_ids(policies: Sequence[PolicyResult]) -> list[str]:
    """Every estimator id once, those behind headlines first; none when there is nothing to compare."""
    compared = [policy for policy in policies if policy.estimates]
    headlines = [policy.headline.estimator for policy in compared]
    return list(dict.fromkeys(headlines + [e.estimator for policy in compared for e in policy.estimates]))


def _tops(report: EvaluationReport) -> dict[str, float]:
    """Common top of each column of small plots, and of the distance bars in the sessions."""
    curves = [c for c in [report.logged_drift, *(p.drift for p in report.policies)] if c]
    turns = [t for p in report.policies for pair in p.sessions for t in pair.imagined]
    return {
        "snap": _plots.top_of(c.snap_distance for c in curves),
        "support": _plots.top_of(c.support_distance for c in curves),
        "ess": _plots.top_of(p.support.ess_per_step for p in report.policies if p.support),
        "turn": max(2.0, _plots.top_of([[t.snap_distance for t in turns]])),
    }


def _agreement(behavior: BehaviorPolicy) -> bool | None:
    """Whether the model's prediction (± 2 standard errors) meets the interval of the logged mean."""
    if behavior.predicted is None or behavior.interval is None:
        return None
    room = 2 * (behavior.predicted_error or 0.0)
    return behavior.interval.low - room <= behavior.predicted <= behavior.interval.high + room
