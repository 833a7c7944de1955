"""Commands around sweeps: sweep, and models list|show|diff."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from preplay.cli._console import Address, Cache, cache_folder, console, join_ray

if TYPE_CHECKING:
    from preplay.sweep import SweepResult

Registry = Annotated[
    Path | None,
    typer.Option(
        help="Folder of published models [default: runs/models].", envvar="PREPLAY_MODELS", show_envvar=True
    ),
]
Name = Annotated[
    str, typer.Argument(help="`NAME` (its newest version), `NAME@VERSION`, or the path of an artifact.")
]


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    app.command(rich_help_panel="Models")(sweep)
    models = typer.Typer(
        no_args_is_help=True, help="Published models: what they are and how they came about."
    )
    for command in (list_, show, diff):
        models.command(command.__name__.rstrip("_"))(command)
    app.add_typer(models, name="models", rich_help_panel="Models")


def sweep(
    config: Annotated[Path, typer.Argument(help="YAML file of the sweep; see tune_configs/.")],
    out: Annotated[
        str | None, typer.Option(help="Folder or URI of the sweep in place of the file's `storage/name`.")
    ] = None,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume",
            help="Go on with the sweep that stands there, if one does; nothing finished is repeated.",
        ),
    ] = False,
    registry: Registry = None,
    cache: Cache = None,
    address: Address = None,
) -> None:
    """Tune world models, critics or estimators across the cluster and publish the best ones as an ensemble.

    Example: `preplay sweep tune_configs/world_model.debug.yaml`
    """
    from preplay.sweep import check_storage, read_sweep, run_sweep

    _use(registry)
    chosen = read_sweep(config)
    check_storage(out or chosen.out)
    join_ray(address)
    result = run_sweep(chosen, out=out, resume=resume, cache=cache_folder(cache), console=console)
    _print_result(result, out or chosen.out)


def list_(registry: Registry = None) -> None:
    """All published models, newest version last.

    Example: `preplay models list`
    """
    from preplay.models import published_models

    _use(registry)
    table = Table(title="Published models")
    for column in ("name", "kind", "created", "members", "figures"):
        table.add_column(column)
    for model in published_models():
        figures = " ".join(f"{name}={value:.4g}" for name, value in model.figures.items())
        table.add_row(model.name, model.kind, model.created, str(model.members), figures)
    console.print(table)


def show(name: Name, registry: Registry = None) -> None:
    """Configuration, data, code, seeds and figures of a model.

    Example: `preplay models show desk-world-model`
    """
    import yaml

    from preplay.models import load_manifest

    _use(registry)
    manifest = load_manifest(name).model_dump(mode="json", exclude={"files"})
    console.print(yaml.safe_dump(manifest, sort_keys=False), markup=False, highlight=False, soft_wrap=True)


def diff(first: Name, second: Name, registry: Registry = None) -> None:
    """Everything in which two models differ: settings, data, code, seeds, figures.

    Example: `preplay models diff desk-world-model@1 desk-world-model@2`
    """
    from preplay.models import differences

    _use(registry)
    table = Table(title=f"{first} against {second}")
    for column in ("field", first, second):
        table.add_column(column, overflow="fold")
    rows = differences(first, second)
    for row in rows:
        table.add_row(row.field, row.first, row.second)
    console.print(table if rows else "They do not differ.")


def _use(registry: Path | None) -> None:
    """Names resolve against this folder from here on, in workers of a local Ray, too."""
    import os

    if registry:
        os.environ["PREPLAY_MODELS"] = str(registry.absolute())


def _print_result(result: "SweepResult", out: str) -> None:
    metric = result.config.metric.name
    table = Table(title=f"{result.config.name}: best trials by {metric}")
    for column in ("trial", metric, "seconds", "parameters"):
        table.add_column(column, justify="left" if column == "parameters" else "right")
    for trial in result.ranked()[:5]:
        shown = " ".join(
            f"{k}={v:.3g}" if isinstance(v, float) else f"{k}={v}" for k, v in trial.parameters.items()
        )
        value = f"{trial.metrics[metric]:.4g}"
        table.add_row(str(trial.number), value, f"{trial.seconds:.1f}", shown or "(defaults)")
    console.print(table)
    for trial in (t for t in result.trials if t.status == "failed"):
        console.print(f"[yellow]trial {trial.number} failed[/]:", end=" ")
        console.print(trial.reason, markup=False, highlight=False, soft_wrap=True)
    if result.ensemble:
        console.print(f"Published: [bold]{result.ensemble}[/], made of trials {result.members}")
    console.print(f"Report: [bold]{out}/report.html[/]; best settings: {out}/best.yaml", soft_wrap=True)
