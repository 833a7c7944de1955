"""The demo command: everything, on a world whose truth is known."""

from pathlib import Path
from typing import Annotated

import typer

from preplay.cli._console import (
    Address,
    Cache,
    Preset,
    PresetOption,
    Seed,
    cache_folder,
    console,
    join_ray,
    print_report,
    settings,
)


def add_to(app: typer.Typer) -> None:
    """Register the command."""
    app.command(rich_help_panel="Start here")(demo)


def demo(
    output: Annotated[Path, typer.Option(help="Folder for everything the demo writes.")] = Path("runs/demo"),
    sessions: Annotated[
        int | None, typer.Option(help="Logged sessions of the two behaviour policies.")
    ] = None,
    preset: PresetOption = Preset.default,
    seed: Seed = None,
    cache: Cache = None,
    address: Address = None,
) -> None:
    """Evaluate policies that never ran, from the logs of two others, and print the truth beside the estimates.

    Simulated customers talk to two support agents; the logs are read, embedded and learned from like anyone's.
    Then eight or more other agents are judged from these logs alone. Takes minutes on a laptop.

    Example: `preplay demo --preset debug`
    """
    from preplay.pipeline import run_demo
    from preplay.report import write_report

    chosen = settings(None, preset, seed)
    count = sessions or (60 if preset is Preset.debug else 1000)
    join_ray(address)
    report = run_demo(output.absolute(), chosen, sessions=count, cache=cache_folder(cache), console=console)
    write_report(report, output / "report")
    print_report(report)
    console.print(f"Open [bold]{output / 'report' / 'report.html'}[/] in a browser.")
