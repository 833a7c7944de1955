"""Commands that judge policies: evaluate, compare, truth."""

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

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
    print_report,
    settings,
)

POLICY_HELP = "Policy: `python:module:function`, `chat:FILE.yaml`, `cloned:FOLDER` or `env:NAME`."
Embedded = Annotated[str, typer.Option("--data", help="Embedded dataset written by `embed`.")]
Models = Annotated[str, typer.Option("--models", help="World models written by `train`.")]
Output = Annotated[Path, typer.Option(help="Folder of the report to write.")]
EnvironmentName = Annotated[
    str | None, typer.Option("--environment", help="Known environment that `env:` policies belong to.")
]
Estimators = Annotated[
    str | None,
    typer.Option(
        "--estimators", help="Comma-separated estimators to print; all that the logs allow by default."
    ),
]


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    for command in (evaluate, compare, shadow, truth):
        app.command(rich_help_panel="Policies")(command)


def evaluate(
    policy: Annotated[str, typer.Argument(help=POLICY_HELP)],
    data: Embedded,
    models: Models,
    output: Output,
    environment: EnvironmentName = None,
    estimators: Estimators = None,
    without: Without = None,
    config: ConfigFile = None,
    preset: PresetOption = Preset.default,
    seed: Seed = None,
    cache: Cache = None,
    address: Address = None,
) -> None:
    """Estimate the value of one policy that never ran, and write a report.

    Example: `preplay evaluate python:my_agent:act --data runs/mine/embedded --models runs/mine/models
    --output runs/mine/report`
    """
    compare(
        [policy], data, models, output, environment, estimators, without, config, preset, seed, cache, address
    )


def compare(
    policies: Annotated[list[str], typer.Argument(help=POLICY_HELP)],
    data: Embedded,
    models: Models,
    output: Output,
    environment: EnvironmentName = None,
    estimators: Estimators = None,
    without: Without = None,
    config: ConfigFile = None,
    preset: PresetOption = Preset.default,
    seed: Seed = None,
    cache: Cache = None,
    address: Address = None,
) -> None:
    """Estimate several policies on the same logs and the same imagined randomness, and write one report.

    Example: `preplay compare env:expert env:random --environment support_desk --data runs/demo/embedded
    --models runs/demo/models --output runs/demo/report`
    """
    from preplay.artifacts import open_artifact
    from preplay.pipeline import EvaluationRequest, evaluate_policies
    from preplay.report import write_report
    from preplay.world_model import list_members

    request = EvaluationRequest(
        data=data,
        models=models,
        policies=tuple(policies),
        output=output.absolute(),
        cache=cache_folder(cache),
        environment=environment,
        estimators=tuple(estimators.split(",")) if estimators else None,
        without=tuple(without or ()),
    )
    chosen = settings(config, preset, seed)
    open_artifact(data, "embedded")
    list_members(models)
    join_ray(address)
    report = evaluate_policies(request, chosen, console=console)
    write_report(report, output)
    print_report(report)
    console.print(f"Report: [bold]{output / 'report.html'}[/]")


def shadow(
    file: Annotated[
        Path, typer.Argument(help="JSON lines, CSV or Parquet with the columns session_id, turn, action.")
    ],
    data: Embedded,
    models: Models,
    output: Annotated[Path | None, typer.Option(help="JSON file to write the estimates to.")] = None,
    without: Without = None,
    config: ConfigFile = None,
    preset: PresetOption = Preset.default,
    seed: Seed = None,
    cache: Cache = None,
) -> None:
    """Estimate a policy from what it *would* do in the logged states; it is never run, and no rewards are needed.

    One row per logged state (several for several samples); `turn` is the position in the session from 0.

    Example: `preplay shadow new_actions.jsonl --data runs/mine/embedded --models runs/mine/models`
    """
    from preplay.artifacts import atomic_write
    from preplay.cli._tables import shadow_json, shadow_table
    from preplay.pipeline import EvaluationRequest, evaluate_shadow

    folder = cache_folder(cache)
    request = EvaluationRequest(
        data=data, models=models, policies=(), output=file.parent, cache=folder, without=tuple(without or ())
    )
    with console.status("Fitting Q on the shadow actions"):
        result = evaluate_shadow(file, request, settings(config, preset, seed))
    console.print(shadow_table(result, file.stem))
    for tested in result.structured.tested.values() if result.structured else ():
        console.print(tested.sentence(), highlight=False, markup=False)
    if output is not None:
        atomic_write(output, shadow_json(result))
        console.print(f"Estimates: [bold]{output}[/]")


def truth(
    policies: Annotated[list[str] | None, typer.Argument(help="`env:NAME`s; all by default.")] = None,
    environment: Annotated[str, typer.Option(help="Known environment.")] = "support_desk",
    sessions: Annotated[int, typer.Option(help="Sessions to play per policy.")] = 20_000,
    seed: Seed = None,
) -> None:
    """Play policies in a known environment and print their true values.

    Example: `preplay truth env:expert env:random --environment support_desk`
    """
    from preplay.environments import get_environment
    from preplay.environments import truth as play
    from preplay.policies import load_policy

    known = get_environment(environment)
    specs = policies or [f"env:{name}" for name in known.policies()]
    table = Table(title=f"True values in {environment} ({sessions:,} sessions each, gamma {known.gamma})")
    for column in ("policy", "value", "standard error", "turns", "resolved", "sale", "churned"):
        table.add_column(column, justify="left" if column == "policy" else "right")
    for spec in specs:
        result = play(load_policy(spec, known), known, sessions=sessions, seed=seed or 0)
        shares = [f"{share:.1%}" for share in (result.resolved, result.sale, result.churned)]
        numbers = [f"{result.value:+.3f}", f"{result.standard_error:.4f}", f"{result.mean_length:.1f}"]
        table.add_row(result.policy, *numbers, *shares)
    console.print(table)
