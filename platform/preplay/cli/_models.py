"""Commands that make models: embed, train, clone, config."""

from pathlib import Path
from typing import Annotated

import typer

from preplay.cli._console import (
    Address,
    Cache,
    ConfigFile,
    Preset,
    PresetOption,
    Seed,
    Without,
    cache_folder,
    console,
    join_ray,
    settings,
)


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    for command in (embed, train, clone, config):
        app.command(rich_help_panel="Models")(command)


def embed(
    dataset: Annotated[str, typer.Argument(help="Dataset written by `ingest`.")],
    output: Annotated[Path, typer.Option(help="Folder of the embedded dataset to write.")],
    config: ConfigFile = None,
    preset: PresetOption = Preset.default,
    cache: Cache = None,
    address: Address = None,
) -> None:
    """Embed every distinct text once; texts that any earlier run embedded come from the cache.

    Example: `preplay embed runs/mine/dataset --output runs/mine/embedded`
    """
    from preplay.artifacts import open_artifact

    chosen = settings(config, preset, None)
    open_artifact(dataset, "dataset")
    from preplay.embedding import embed_dataset  # after the checks: it takes seconds

    join_ray(address)
    artifact = embed_dataset(dataset, output, chosen.encoder, cache_dir=cache_folder(cache))
    console.print(f"Embedded dataset written to [bold]{output}[/]: {artifact.manifest.metrics}")


def train(
    embedded: Annotated[str, typer.Argument(help="Embedded dataset written by `embed`.")],
    output: Annotated[Path, typer.Option(help="Folder of the world models to write.")],
    members: Annotated[int | None, typer.Option(help="World models in the ensemble.")] = None,
    without: Without = None,
    config: ConfigFile = None,
    preset: PresetOption = Preset.default,
    seed: Seed = None,
    address: Address = None,
) -> None:
    """Train an ensemble of world models; finished members are kept, unfinished ones continue.

    Example: `preplay train runs/mine/embedded --output runs/mine/models --members 2`
    """
    from preplay.artifacts import open_artifact

    chosen = settings(config, preset, seed)
    open_artifact(embedded, "embedded")
    from preplay.pipeline import train_models  # after the checks: it takes seconds

    join_ray(address)
    train_models(embedded, output, chosen, members=members, without=tuple(without or ()), console=console)
    console.print(f"World models written to [bold]{output}[/].")


def clone(
    embedded: Annotated[str, typer.Argument(help="Embedded dataset with sessions of the policy.")],
    policy: Annotated[str, typer.Option(help="Logged policy to clone.")],
    output: Annotated[Path, typer.Option(help="Folder of the clone to write.")],
    sessions: Annotated[int | None, typer.Option(help="Use only this many of its sessions.")] = None,
    seed: Seed = None,
) -> None:
    """Clone a logged policy from what it did, without its rewards, to judge it from other policies' logs.

    Example: `preplay clone runs/sql/embedded --policy gpt-3.5 --output runs/sql/clones/gpt-3.5`
    """
    from preplay.pipeline import clone_policy

    used = clone_policy(embedded, policy, output, sessions=sessions, seed=seed or 0)
    console.print(f"Clone of {policy} from {used} sessions written to [bold]{output}[/].")


def config(
    file: ConfigFile = None,
    preset: PresetOption = Preset.default,
) -> None:
    """Print the whole configuration as YAML, to be changed and passed with `--config`.

    Example: `preplay config > preplay.yaml`
    """
    from preplay.pipeline import config_yaml

    typer.echo(config_yaml(settings(file, preset, None)), nl=False)
