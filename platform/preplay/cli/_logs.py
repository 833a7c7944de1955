"""Commands about logs: ingest, inspect."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from preplay.artifacts import atomic_write
from preplay.cli._console import console


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    app.command(rich_help_panel="Logs")(ingest)
    app.command(rich_help_panel="Logs")(inspect)
    app.command(rich_help_panel="Logs")(formats)


def ingest(
    paths: Annotated[list[str], typer.Argument(help="Files or folders with logs (plain, .gz or .zst).")],
    output: Annotated[Path, typer.Option(help="Folder of the dataset to write.")],
    format: Annotated[
        str, typer.Option(help="Name of the format, or `auto` to detect it per file.")
    ] = "auto",
) -> None:
    """Read logs into a checked dataset; bad records are kept aside and counted.

    Example: `preplay ingest logs/*.jsonl --output runs/mine/dataset`
    """
    from preplay.logs import ingest as ingest_logs
    from preplay.logs import load_card, render_card

    artifact = ingest_logs(paths, str(output), format=format)
    console.print(render_card(load_card(artifact.path)))
    console.print(f"Dataset written to [bold]{output}[/].")
    if bad := artifact.manifest.metrics["quarantined"]:
        console.print(
            f"[yellow]{bad} records were put aside[/] in {output}/quarantine.jsonl with their reasons."
        )


def inspect(
    paths: Annotated[list[str], typer.Argument(help="A dataset, or log files.")],
    format: Annotated[str, typer.Option(help="Name of the format, or `auto`.")] = "auto",
    html: Annotated[Path | None, typer.Option(help="Also write the card as an HTML page here.")] = None,
) -> None:
    """Print a data card: sessions, policies, lengths, rewards, propensities, tool calls, leaks, warnings.

    Example: `preplay inspect runs/mine/dataset`
    """
    from preplay.backtest import action_notes
    from preplay.embedding import EncoderConfig, language_warning
    from preplay.logs import data_card, load_card, load_turns, read_logs, render_card

    if len(paths) == 1 and (Path(paths[0]) / "manifest.json").exists():
        card, turns = load_card(paths[0]), load_turns(paths[0])
    else:
        result = read_logs(paths, format)
        turns = result.turns
        card = data_card(
            result.turns,
            len(result.quarantined),
            formats=result.formats,
            records=result.records,
            notes=result.notes,
        )
        for bad in result.quarantined[:10]:
            console.print(f"put aside: {bad.source}, field {bad.field!r}: {bad.reason}", markup=False)
    if warning := language_warning(card.language, EncoderConfig()):
        card = card.model_copy(update={"warnings": [*card.warnings, warning]})
    recorder = Console(record=True, width=110) if html else console
    recorder.print(render_card(card))
    for sentence in action_notes(turns):
        recorder.print(sentence, markup=False, highlight=False)
    if html:
        atomic_write(html, recorder.export_html().encode())


def formats() -> None:
    """List the log formats that are read, with an example of each.

    Example: `preplay formats`
    """
    from rich.text import Text

    from preplay.logs import readers

    for reader in readers().values():
        console.print(Text(reader.name, style="bold"), Text(f"  {reader.description}"), sep="")
        console.print(Text(f"    {reader.example}", style="dim"))
