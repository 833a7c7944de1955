"""A sweep as one self-contained page that looks like the evaluation's report."""

from markupsafe import Markup

from preplay.report import page_environment, style_sheet
from preplay.sweep import _charts
from preplay.sweep._importance import importances
from preplay.sweep._records import SweepResult


def render_sweep(result: SweepResult) -> str:
    """The page; nothing is loaded from anywhere, and it can be read without scripts."""
    metric = result.config.metric.name
    # All trials have been at the first stage, only good ones got further: only there they can be compared.
    first = [(t.parameters, t.history[0][metric]) for t in result.trials if t.history and t.parameters]
    columns, lines = _charts.parallel_coordinates(result)
    front, cost = _charts.cost_front(result)
    template = page_environment("preplay.sweep").get_template("sweep.html.j2")
    return template.render(
        result=result,
        config=result.config,
        metric=metric,
        ranked=result.ranked(),
        default=result.default(),
        kinds={t.number: _charts.kind_of(t, result) for t in result.trials},
        counts={
            s: sum(t.status == s for t in result.trials)
            for s in ("finished", "stopped", "failed", "unfinished")
        },
        seconds=sum(t.seconds for t in result.trials),
        curves=_charts.learning_curves(result),
        columns=columns,
        lines=lines,
        front=front,
        cost=cost,
        importances=importances([p for p, _ in first], [v for _, v in first], seed=result.config.seed),
        size=(_charts.WIDTH, _charts.HEIGHT),
        style=Markup(style_sheet()),
    )
