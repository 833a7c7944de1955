"""The page of a rehearsal run: curves, the gate's decisions and the film strip, in one self-contained file."""

import base64
from collections.abc import Callable, Sequence
from pathlib import Path

from markupsafe import Markup

from preplay.report import Axis, Chart, Shape, Tick, axis_for, page_environment, style_sheet
from preplay_rllib._curve import Point
from preplay_rllib._minigrid import OPTIMAL_RETURN
from preplay_rllib._run_config import RehearsalRun, RehearsalRunConfig

PAGE, STRIP, GIF = "report.html", "strip.png", "episode.gif"


def write_page(config: RehearsalRunConfig, run: RehearsalRun) -> Path:
    """Write ``report.html`` beside the run's other files."""
    html = (
        page_environment("preplay_rllib")
        .get_template("rehearsal.html.j2")
        .render(
            config=config.model_dump(),
            facts=_facts(config, run),
            charts=charts(run.points, config.task),
            style=Markup(style_sheet()),
            strip=_inline(run.folder / STRIP, "png"),
            gif=_inline(run.folder / GIF, "gif"),
        )
    )
    file = run.folder / PAGE
    file.write_text(html, encoding="utf-8")
    return file


def charts(points: Sequence[Point], task: str) -> list[Chart]:
    """Return, gate, exact match, gap and model loss over real steps; the dashed line is the bar to reach."""
    goal = 0.9 * OPTIMAL_RETURN[task] if task in OPTIMAL_RETURN else None
    return [
        _chart(points, "Return", lambda p: p.episode_return, "mean of the last 50 episodes", goal),
        _chart(points, "Rehearsal open", lambda p: p.open, "1 where the gates let rehearsal run"),
        _chart(points, "Exact match", lambda p: p.model_exact, "newest transitions, before training on them"),
        _chart(points, "Gap", lambda p: p.gap, "imagined minus real success from the same states", 0.0),
        _chart(points, "Imagined success", lambda p: p.imagined_success, "share of branches"),
        _chart(points, "Model loss", lambda p: p.model_loss, "cross-entropies, summed"),
    ]


def _chart(
    points: Sequence[Point],
    title: str,
    value: Callable[[Point], float | None],
    what: str,
    line: float | None = None,
) -> Chart:
    known = [(p.real_steps, v) for p in points if (v := value(p)) is not None]
    x, y = (
        Axis(0, max((p.real_steps for p in points), default=1), (), 0),
        axis_for([line, *(v for _, v in known)]),
    )
    path = "".join(f"{'L' if i else 'M'}{x.at(s)} {_up(y, v)}" for i, (s, v) in enumerate(known))
    shapes = [Shape("curve", path)] if known else []
    if line is not None:
        shapes.append(Shape("reference", f"M0 {_up(y, line)}H100"))
    last = f"{what}; {known[-1][1]:.3g} at the end." if known else f"{what}; not known in this run."
    return Chart(title, last, "real environment steps", _steps(x), _values(y), tuple(shapes))


def _up(axis: Axis, value: float) -> float:
    return round(100 - axis.at(value), 2)


def _steps(axis: Axis) -> tuple[Tick, ...]:
    return tuple(Tick(axis.at(s), f"{s:,.0f}") for s in (axis.high / 2, axis.high))


def _values(axis: Axis) -> tuple[Tick, ...]:
    return tuple(Tick(_up(axis, t), f"{t:.{axis.decimals}f}".replace("-", "−")) for t in axis.ticks)


def _facts(config: RehearsalRunConfig, run: RehearsalRun) -> dict[str, str]:
    last = run.points[-1]
    shown = "–" if last.episode_return is None else f"{last.episode_return:.3f}"
    opened = sum(p.open or 0 for p in run.points)
    return {
        "Task": config.task,
        "Algorithm": f"Rehearsal{config.algorithm.upper()}",
        "Seed": str(config.seed),
        "Real steps": f"{last.real_steps:,}",
        "Imagined rows": f"{sum(p.imagined_rows or 0 for p in run.points):,.0f}",
        "Return at the end": shown,
        "Real steps to 0.9 of the optimum": f"{run.reached:,}" if run.reached else "not reached",
        "Training steps with rehearsal": f"{opened:.0f} of {len(run.points)}",
    }


def _inline(file: Path, kind: str) -> str | None:
    if not file.exists():
        return None
    return f"data:image/{kind};base64,{base64.b64encode(file.read_bytes()).decode()}"
