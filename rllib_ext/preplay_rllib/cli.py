"""The ``preplay rehearse`` command."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from preplay_rllib._curve import Point
    from preplay_rllib._run_config import RehearsalRun, RehearsalRunConfig


class RehearsalPreset(StrEnum):
    """Configurations that come with the command."""

    default = "default"
    debug = "debug"


def add_to(app: typer.Typer) -> None:
    """Register the command."""
    app.command(rich_help_panel="Rehearse")(rehearse)


def rehearse(
    config: Annotated[
        Path | None,
        typer.Argument(help="YAML file with fields of RehearsalRunConfig; the preset alone without it."),
    ] = None,
    output: Annotated[Path, typer.Option(help="Folder for everything the run writes.")] = Path(
        "runs/rehearsal"
    ),
    preset: Annotated[
        RehearsalPreset, typer.Option(help="`debug` learns an empty room in seconds, for a first look.")
    ] = RehearsalPreset.default,
    seed: Annotated[
        int | None, typer.Option(help="Seed of every random draw; same seed, same curve.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the newest checkpoint.")] = False,
    address: Annotated[
        str | None, typer.Option(help="Ray cluster to run on (host:port or 'auto'); a local one by default.")
    ] = None,
) -> None:
    """Train an agent on real and imagined experience, and watch what the imagination is worth.

    Writes the curve (metrics.csv, TensorBoard), checkpoints, a film of real against imagined steps, and a page.

    Example: `preplay rehearse --preset debug`
    """
    from preplay.stage import connect

    chosen = load_run_config(config, preset, seed)
    connect(address)
    run = _train(chosen, output.absolute(), resume)
    _say(run)


def load_run_config(file: Path | None, preset: RehearsalPreset, seed: int | None) -> "RehearsalRunConfig":
    """The preset, changed by the YAML file, changed by the seed."""
    import yaml
    from pydantic import ValidationError

    from preplay.errors import PreplayError
    from preplay_rllib._run_config import DEBUG, RehearsalRunConfig

    values: dict[str, Any] = dict(DEBUG) if preset is RehearsalPreset.debug else {}
    if file is not None:
        if not file.exists():
            raise PreplayError("there is no such file.", where=str(file), fix="Check the path.")
        values |= yaml.safe_load(file.read_text()) or {}
    try:
        if seed is not None:
            values["seed"] = seed
        return RehearsalRunConfig(**values)
    except (ValidationError, TypeError) as error:
        raise PreplayError(
            f"not a configuration of a rehearsal run: {error}", where=str(file), fix="See RehearsalRunConfig."
        ) from error


def _train(config: "RehearsalRunConfig", output: Path, resume: bool) -> "RehearsalRun":
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    from preplay.cli._console import console
    from preplay_rllib._train import train_rehearsal

    columns = (TextColumn("real steps"), BarColumn(), TextColumn("{task.description}"), TimeRemainingColumn())
    with Progress(*columns, console=console) as progress:
        bar = progress.add_task("", total=config.real_steps)

        def show(point: "Point") -> None:
            progress.update(bar, completed=point.real_steps, description=_described(point))

        return train_rehearsal(config, output, resume=resume, on_point=show)


def _described(point: "Point") -> str:
    value = "–" if point.episode_return is None else f"{point.episode_return:.3f}"
    return f"{point.real_steps:,} · return {value} · rehearsal {'on' if point.open else 'off'}"


def _say(run: "RehearsalRun") -> None:
    from preplay.cli._console import console
    from preplay_rllib._page import PAGE

    if run.reached:
        console.print(f"0.9 of the optimal return after [bold]{run.reached:,}[/] real steps.")
    console.print(
        f"Open [bold]{run.folder / PAGE}[/] in a browser; `tensorboard --logdir {run.folder}` shows more."
    )
