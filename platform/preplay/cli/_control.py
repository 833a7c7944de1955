"""Commands about critics and the agents that they drive."""

import math
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from preplay.cli._console import Cache, Seed, cache_folder, console

Dataset = Annotated[str, typer.Argument(help="Dataset written by `ingest`.")]
CriticFolder = Annotated[str, typer.Option("--critic", help="Critic written by `critic train`.")]
Generator = Annotated[
    str,
    typer.Option(
        help="Agent that proposes: plausible, strong, middling, hasty, reckless, puzzled, red_team."
    ),
]
Audit = Annotated[str, typer.Option("--audit", help="Folder of the audit log.")]


class Algorithm(StrEnum):
    """How a critic learns."""

    auto = "auto"
    iql = "iql"
    cql = "cql"
    awr = "awr"
    bc = "bc"
    actor_critic = "actor_critic"
    logistic = "logistic"
    boosting = "boosting"


def add_to(app: typer.Typer) -> None:
    """Register the two groups of commands."""
    critic = typer.Typer(no_args_is_help=True, help="Train a critic on logged decisions, and measure it.")
    for command in (train, evaluate):
        critic.command()(command)
    control = typer.Typer(
        no_args_is_help=True, help="Let a critic drive an agent, and learn from what came of it."
    )
    for command in (record, simulate, analyze, retrain):
        control.command()(command)
    app.add_typer(critic, name="critic", rich_help_panel="Control")
    app.add_typer(control, name="control", rich_help_panel="Control")


def train(
    dataset: Dataset,
    output: Annotated[Path, typer.Option(help="Folder of the critic to write.")],
    algorithm: Annotated[
        Algorithm,
        typer.Option(
            help="IQL, CQL, an actor-critic, advantage-weighted or plain cloning; or a calibrated classifier of "
            "immediate success. By default IQL; or the logistic classifier where the logs say of each action whether "
            "it was right (extras.solved) and neither members nor steps nor gamma are set."
        ),
    ] = Algorithm.auto,
    members: Annotated[int, typer.Option(help="Networks in the ensemble.")] = 1,
    steps: Annotated[int, typer.Option(help="Steps of training per network.")] = 400,
    gamma: Annotated[float, typer.Option(min=0, max=1, help="Discount of one turn.")] = 0.95,
    embed: Annotated[
        bool | None,
        typer.Option(help="Read sentence embeddings, too; by default where most actions are plain text."),
    ] = None,
    cache: Cache = None,
    seed: Seed = None,
) -> None:
    """Train on three quarters of the tasks; print how it does on the other quarter.

    Example: `preplay critic train runs/mine/dataset --output runs/mine/critic --members 3`
    """
    from preplay.control import train_from_dataset
    from preplay.critics import CriticConfig, saved_algorithm

    name, auto = algorithm.value, algorithm is Algorithm.auto
    if name == "logistic" or name == "boosting":
        config = name
    else:
        config = CriticConfig(
            algorithm="iql" if name == "auto" else name, members=members, steps=steps, gamma=gamma
        )
    with console.status("Encoding states and actions, then training"):
        metrics = train_from_dataset(
            dataset,
            output,
            config,
            seed=seed or 0,
            cache=cache_folder(cache),
            graded="logistic" if auto and config == CriticConfig() else None,
            embed=embed,
        )
    _print("Critic on held-out tasks", asdict(metrics))
    console.print(f"Critic ({saved_algorithm(output)}) written to [bold]{output}[/].")


def evaluate(dataset: Dataset, critic: CriticFolder) -> None:
    """Measure a critic on a dataset of tasks that it has not seen. What counts in the end is `control simulate`.

    Example: `preplay critic evaluate runs/new/dataset --critic runs/mine/critic`
    """
    from preplay.control import evaluate_on_dataset

    _print(f"{critic} on {dataset}", asdict(evaluate_on_dataset(critic, dataset)))


def record(
    output: Annotated[Path, typer.Argument(help="JSON Lines file to write.")],
    sessions: Annotated[int, typer.Option(help="Sessions to record.")] = 200,
    generator: Generator = "plausible",
    interrupted: Annotated[float, typer.Option(help="Share of decisions that are made blindly.")] = 0.3,
    seed: Seed = None,
) -> None:
    """Record an expert that is interrupted at random: coding-agent trajectories to learn from.

    Example: `preplay control record runs/expert.jsonl --sessions 200`, then `preplay ingest runs/expert.jsonl`
    """
    from preplay.control import record_noisy_expert

    output.parent.mkdir(parents=True, exist_ok=True)
    count = record_noisy_expert(
        output, sessions=sessions, seed=seed or 0, source=generator, interrupted=interrupted
    )
    console.print(f"{count} trajectories written to [bold]{output}[/].")


def simulate(
    critic: CriticFolder,
    sessions: Annotated[int, typer.Option(help="Sessions to play with and without the critic.")] = 64,
    audit: Annotated[
        str | None, typer.Option(help="Append every decision to the audit log in this folder.")
    ] = None,
    environment: Annotated[
        str, typer.Option(help="code-repair, or a text environment: support_desk, support_desk_long.")
    ] = "code-repair",
    generator: Generator = "plausible",
    seed: Seed = None,
) -> None:
    """Play with and without the critic. Code is executed in a sandbox, a support agent meets simulated customers.

    Examples:

    `preplay control simulate --critic runs/mine/critic --sessions 64 --audit runs/mine/audit`

    `preplay control simulate --critic runs/demo/critic --environment support_desk`
    """
    from preplay.control import simulate_code_repair, simulate_conversations

    with console.status("Playing"):
        if environment == "code-repair":
            result = simulate_code_repair(
                critic, sessions=sessions, seed=seed or 0, source=generator, audit=audit
            )
        else:
            result = simulate_conversations(
                critic, environment, sessions=sessions, seed=seed or 0, audit=audit
            )
    _print(f"{environment}, {sessions} sessions", result)


def analyze(audit: Audit, critic: CriticFolder) -> None:
    """Whose fault were the failures: no good candidate, a good one scored low, or states that look the same?

    Example: `preplay control analyze --audit runs/mine/audit --critic runs/mine/critic`
    """
    from preplay.control import analyze_audit

    _print("Failures by cause", asdict(analyze_audit(audit, critic)))


def retrain(
    dataset: Dataset,
    critic: CriticFolder,
    audit: Audit,
    output: Annotated[Path, typer.Option(help="Where the new critic goes; may be the old one's folder.")],
    seed: Seed = None,
) -> None:
    """Learn from old and new data; a critic that forgets the old tasks is refused.

    Example: `preplay control retrain runs/mine/dataset --critic runs/mine/critic --audit runs/mine/audit
    --output runs/mine/critic`
    """
    from preplay.control import retrain_from_audit

    result = retrain_from_audit(critic, dataset, audit, output, seed=seed or 0)
    _print("Old held-out tasks (AUC)", asdict(result))
    if not result.replaced:
        console.print(f"[yellow]The critic was not replaced[/]: {result.reason}.")


def _print(title: str, values: dict[str, Any]) -> None:
    table = Table(title=title)
    table.add_column("measure")
    table.add_column("value", justify="right")
    for name, value in values.items():
        table.add_row(name.replace("_", " "), _shown(value))
    console.print(table)


def _shown(value: Any) -> str:
    """NaN stands for what these logs do not tell, such as ranks where every pool holds one action."""
    if not isinstance(value, float):
        return str(value)
    return "–" if math.isnan(value) else f"{value:.3f}"
