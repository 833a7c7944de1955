"""Commands that try preplay on the user's own logs: backtest."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from preplay.cli._console import Seed, console
from preplay.errors import PreplayError

if TYPE_CHECKING:
    import pyarrow as pa

    from preplay.backtest import BacktestReport


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    app.command(rich_help_panel="Policies")(backtest)


def backtest(
    paths: Annotated[list[str], typer.Argument(help="A dataset written by `ingest`, or log files.")],
    output: Annotated[Path | None, typer.Option(help="JSON file to write the whole report to.")] = None,
    format: Annotated[str, typer.Option(help="Name of the log format, or `auto`.")] = "auto",
    environment_key: Annotated[
        str | None,
        typer.Option(help="Field of `extras` that names the environment; found by itself by default."),
    ] = None,
    group: Annotated[
        list[str] | None,
        typer.Option(help="`POLICY=GROUP`: policies of a group are left out together (repeatable)."),
    ] = None,
    solved_at: Annotated[
        float, typer.Option(help="Reward of a turn from which its session is solved.")
    ] = 1.0,
    horizon: Annotated[
        int | None, typer.Option(help="Turn budget to judge all policies under.", min=1)
    ] = None,
    level: Annotated[float, typer.Option(help="Level of the intervals.", min=0.51, max=0.99)] = 0.9,
    only: Annotated[
        str | None, typer.Option(help="Do not backtest: predict this policy, never looking at its rewards.")
    ] = None,
    labelled: Annotated[
        str | None,
        typer.Option(help="With --only: `SOLVED/SESSIONS` of its sessions that were labelled after all."),
    ] = None,
    actions_only: Annotated[
        bool,
        typer.Option(help="Look at no session of a left-out policy, only at what it does in each state."),
    ] = False,
    seed: Seed = None,
) -> None:
    """Leave every logged policy out in turn, predict its success from the others, and compare.

    Example: `preplay backtest runs/mine/dataset --output runs/mine/backtest.json`
    """
    from preplay.backtest import BacktestConfig, estimate_policy
    from preplay.backtest import backtest as run

    known = "actions" if actions_only else "sessions"
    config = BacktestConfig(level=level, horizon=horizon, known=known, seed=seed or 0)
    turns = _turns(paths, format)
    chosen = {"environment_key": environment_key, "groups": _groups(group), "solved_at": solved_at}
    if only:
        found = estimate_policy(turns, only, config, labelled=_labelled(labelled), **chosen)
        _write(output, found.model_dump_json(indent=2))
        console.print(found.sentence(), highlight=False, markup=False)
        return
    report = run(turns, config, **chosen)
    _write(output, report.model_dump_json(indent=2))
    _show(report)


def _turns(paths: list[str], format: str) -> "pa.Table":
    from preplay.logs import load_turns, read_logs

    if len(paths) == 1 and (Path(paths[0]) / "manifest.json").exists():
        return load_turns(paths[0])
    return read_logs(paths, format).turns


def _groups(given: list[str] | None) -> dict[str, str]:
    pairs = [entry.rpartition("=") for entry in given or []]
    for name, _, group in pairs:
        if not name or not group:
            raise PreplayError(f"--group needs POLICY=GROUP, not {(name or group)!r}.")
    return {name: group for name, _, group in pairs}


def _labelled(given: str | None) -> tuple[int, int]:
    solved, slash, sessions = (given or "0/0").partition("/")
    if not (slash and solved.isdigit() and sessions.isdigit()):
        raise PreplayError(f"--labelled needs SOLVED/SESSIONS, as 4/10, not {given!r}.")
    return int(solved), int(sessions)


def _write(output: Path | None, text: str) -> None:
    if output:
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text(text + "\n", encoding="utf-8")


def _show(report: "BacktestReport") -> None:
    for note in report.notes if report.chosen else report.notes[:-1]:
        console.print(note, highlight=False, markup=False)
    if report.chosen:
        console.print(_policy_table(report))
        console.print(_score_table(report))
        for policy, skills in report.missing().items():
            said = f"{policy} alone does: {skills[0].what} ({skills[0].share:.0%} of its turns)."
            console.print(said, highlight=False, markup=False)
        for item in report.collect[:3]:
            console.print(
                f"Collect next: {item.what} ({item.support} turns of others).", highlight=False, markup=False
            )
    console.print(report.sentence(), highlight=False, markup=False)


def _policy_table(report: "BacktestReport") -> Table:
    table = Table(title="Left-out policies (share of sessions solved, %)")
    for column in ("policy", "predicted", "interval", "logged", "verdict"):
        table.add_column(column, justify="left" if column in ("policy", "verdict") else "right")
    for p in report.policies:
        bounds = f"{100 * p.bounds.low:.0f} … {100 * p.bounds.high:.0f}"
        logged = "" if p.logged is None else f"{100 * p.logged:.1f}"
        verdict = p.verdict if p.verdict == "estimate" else f"{p.verdict}: {p.reason}"
        table.add_row(p.policy, f"{100 * p.predicted:.1f}", bounds, logged, verdict)
    return table


def _score_table(report: "BacktestReport") -> Table:
    table = Table(title="Points of error by estimator")
    for column in ("estimator", "pooled", "worst", "parts", "rank correlation", "regret", "CPU s"):
        table.add_column(column, justify="left" if column == "estimator" else "right")
    for s in report.scores:
        numbers = [f"{v:.1f}" for v in (s.pooled, s.worst, s.fold)]
        rank = f"{s.spearman:.2f} ({s.spearman_low:.2f} … {s.spearman_high:.2f})"
        table.add_row(s.estimator, *numbers, rank, f"{s.regret:.1f}", f"{s.seconds:.1f}")
    return table
