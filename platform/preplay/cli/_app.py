"""The Typer application, and how errors reach the user."""

import sys
from importlib.metadata import entry_points

import typer

from preplay.cli import _backtest, _control, _demo, _evaluate, _logs, _models, _sweep
from preplay.cli._console import errors
from preplay.errors import PreplayError

app = typer.Typer(
    name="preplay",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    help="Try a new LLM agent on its past before it meets its users.\n\n"
    "Logs of the old agent go in; out comes how well a **new** policy would do, with an interval and a verdict.\n\n"
    "Start with `preplay demo`. With your own logs: `ingest`, `embed`, `train`, then `compare`.",
)
for module in (_demo, _logs, _models, _sweep, _evaluate, _backtest, _control):
    module.add_to(app)
# `preplay_rllib` and `preplay_serve` import `preplay`, never the reverse: they bring their commands as entry points.
for command in sorted(entry_points(group="preplay.commands"), key=lambda entry: entry.name):
    command.load()(app)


def main() -> None:
    """Entry point of the ``preplay`` command; user errors are printed in plain words, without a stack trace."""
    try:
        app()
    except PreplayError as error:
        errors.print("[bold red]error:[/]", end=" ")
        errors.print(str(error), markup=False, highlight=False, soft_wrap=True)
        sys.exit(1)
