"""What all commands share: the consoles, options with their help, and the connection to Ray."""

import os
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

if TYPE_CHECKING:
    from preplay.pipeline import PreplayConfig
    from preplay.report import EvaluationReport

console = Console()
errors = Console(stderr=True)


class Preset(StrEnum):
    """Configurations that come with preplay."""

    default = "default"
    debug = "debug"


Seed = Annotated[int | None, typer.Option(help="Seed of every random draw; same seed, same result.")]
Address = Annotated[
    str | None, typer.Option(help="Ray cluster to run on (host:port or 'auto'); a local one by default.")
]
ConfigFile = Annotated[Path | None, typer.Option("--config", help="YAML file; see `preplay config`.")]
PresetOption = Annotated[Preset, typer.Option(help="`debug` runs every step in seconds, for a first look.")]
Cache = Annotated[
    Path | None,
    typer.Option(
        help="Folder of the embedding cache that runs share.", envvar="PREPLAY_CACHE", show_envvar=True
    ),
]
Without = Annotated[
    list[str] | None, typer.Option(help="Leave out the sessions of this logged policy (repeatable).")
]


def cache_folder(cache: Path | None) -> Path:
    """The given cache folder, or the user's."""
    default = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "preplay"
    return (cache or default).absolute()


def settings(config: Path | None, preset: Preset, seed: int | None) -> "PreplayConfig":
    """Preset, YAML and seed as one configuration."""
    from preplay.pipeline import load_config

    return load_config(config, preset.value, seed)


def print_report(report: "EvaluationReport") -> None:
    """Headline, differences, every estimator, the comparison with the truth where it is known, and one sentence."""
    from preplay.cli._tables import estimates_table, ranking_table
    from preplay.report import compare_table, differences_table, summary_sentence

    console.print(compare_table(report))
    if report.differences:
        console.print(differences_table(report))
    console.print(estimates_table(report))
    if report.ranking:
        console.print(ranking_table(report))
    console.print(summary_sentence(report))


def join_ray(address: str | None) -> None:
    """Start or join Ray before the first step that needs it."""
    from preplay.stage import connect

    connect(address)
