"""``preplay serve``: the server, its tokens and its critics. What is heavy is imported by the commands."""

import threading
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from preplay.errors import PreplayError

if TYPE_CHECKING:
    from preplay_serve._config import ServerConfig
    from preplay_serve.store import Store

console = Console()
LOOPBACK = ("127.0.0.1", "localhost", "::1")
ConfigOption = Annotated[
    Path | None, typer.Option("--config", help="YAML file; the fields are those of `ServerConfig`.")
]
StateOption = Annotated[
    str | None, typer.Option("--state", help="Folder of everything the server writes [default: runs/serve].")
]
ModelsOption = Annotated[
    str | None,
    typer.Option("--models", help="Folder with critics, world models and datasets [default: runs]."),
]


def add_to(app: typer.Typer) -> None:
    """Register ``preplay serve`` and what belongs to it."""
    group = typer.Typer(help=run.__doc__, invoke_without_command=True, rich_markup_mode="markdown")
    group.callback()(run)
    tokens = typer.Typer(help="Bearer tokens.", no_args_is_help=True)
    for command in (create, list_tokens, revoke):
        tokens.command("list" if command is list_tokens else None)(command)
    group.add_typer(tokens, name="token")
    for command in (publish, rollback, refresh, audit, prune):
        group.command()(command)
    app.add_typer(group, name="serve", rich_help_panel="Serving")


def run(
    context: typer.Context,
    models: ModelsOption = None,
    data: Annotated[str | None, typer.Option(help="Folder with datasets, if another.")] = None,
    state: StateOption = None,
    host: Annotated[
        str, typer.Option(help="Address to listen on; others than loopback need a token.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on.")] = 8000,
    config: ConfigOption = None,
    haproxy: Annotated[
        bool, typer.Option(help="Ray Serve's HAProxy mode: a faster way in, Linux only.")
    ] = False,
    address: Annotated[
        str | None, typer.Option(help="Ray cluster to run on; a local one by default.")
    ] = None,
    num_cpus: Annotated[int | None, typer.Option(help="CPUs of the local Ray.")] = None,
) -> None:
    """Serve scores of candidate actions, evaluations of policies, and pages to look at.

    Example: `preplay serve --models runs`
    """
    if context.invoked_subcommand:
        return
    settings = _settings(config, models=models, data=data, state=state)
    settings = settings.model_copy(update={"allow_anonymous": host in LOOPBACK})
    _check_bind(settings, host)
    from preplay_serve._server import serve_until

    serve_until(
        threading.Event(),
        settings,
        host=host,
        port=port,
        haproxy=haproxy,
        address=address,
        num_cpus=num_cpus,
        on_ready=lambda: console.print(f"Serving on [bold]http://{host}:{port}[/] (Ctrl-C stops)."),
    )


def create(
    name: Annotated[str, typer.Argument(help="Who or what uses it.")],
    scope: Annotated[
        list[str] | None,
        typer.Option(help="read, score, evaluate or admin; repeatable. All but admin by default."),
    ] = None,
    config: ConfigOption = None,
    state: StateOption = None,
) -> None:
    """Make a token and print it; it is kept as a hash only.

    Example: `preplay serve token create my-agent --scope score`
    """
    scopes = frozenset(scope or ("read", "score", "evaluate"))
    typer.echo(_store(config, state).tokens.create(name, scopes))  # pyright: ignore[reportArgumentType]


def list_tokens(config: ConfigOption = None, state: StateOption = None) -> None:
    """List tokens, without their secrets.

    Example: `preplay serve token list`
    """
    table = Table()
    for column in ("name", "scopes", "created", "revoked"):
        table.add_column(column)
    for token in _store(config, state).tokens.list():
        revoked = f"{token.revoked:%Y-%m-%d %H:%M}" if token.revoked else ""
        table.add_row(token.name, " ".join(sorted(token.scopes)), f"{token.created:%Y-%m-%d %H:%M}", revoked)
    console.print(table)


def revoke(name: str, config: ConfigOption = None, state: StateOption = None) -> None:
    """End a token; running servers let go of it within two seconds.

    Example: `preplay serve token revoke my-agent`
    """
    _store(config, state).tokens.revoke(name)


def publish(
    name: str, path: Path, models: ModelsOption = None, config: ConfigOption = None, state: StateOption = None
) -> None:
    """Check a critic and put it into service under a name; one that fails a check changes nothing.

    Example: `preplay serve publish critic runs/mine/critic`
    """
    from preplay_serve._catalog import publish_critic

    settings = _settings(config, models=models, state=state)
    version = publish_critic(settings, _store(config, state), name, path)
    console.print(f"{name} is now {version[:12]}.")


def rollback(name: str, config: ConfigOption = None, state: StateOption = None) -> None:
    """Put the version of a critic that was there before into service again.

    Example: `preplay serve rollback critic`
    """
    console.print(f"{name} is now {_store(config, state).artifacts.rollback('critic', name).version[:12]}.")


def refresh(models: ModelsOption = None, config: ConfigOption = None, state: StateOption = None) -> None:
    """Register what is new in the server's folders.

    Example: `preplay serve refresh`
    """
    from preplay_serve._catalog import refresh as register

    problems = register(_settings(config, models=models, state=state), _store(config, state))
    for line in problems:
        console.print(f"[yellow]refused[/]: {line}", highlight=False)
    if not problems:
        console.print("Everything in the folders is registered.")


def audit(output: Path, config: ConfigOption = None, state: StateOption = None) -> None:
    """Write decisions and outcomes as an audit log, for `preplay control retrain`.

    Example: `preplay serve audit runs/mine/audit`
    """
    from preplay_serve._audit import export_audit

    console.print(f"{export_audit(_store(config, state), output)} decisions written to [bold]{output}[/].")


def prune(
    days: Annotated[float | None, typer.Option(help="Delete decisions older than so many days.")] = None,
    keep: Annotated[int | None, typer.Option(help="Delete the oldest beyond so many.")] = None,
    config: ConfigOption = None,
    state: StateOption = None,
) -> None:
    """Delete old decisions, with their texts and outcomes; a server does it by itself (`scoring.keep_days`).

    Example: `preplay serve prune --days 90`
    """
    if days is None and keep is None:
        raise PreplayError("nothing says what is old.", fix="Give --days or --keep.")
    gone = _store(config, state).decisions.prune(keep_days=days, keep=keep)
    console.print(f"{gone} decisions deleted.")


def _check_bind(settings: "ServerConfig", host: str) -> None:
    from preplay_serve.store import open_store

    if host not in LOOPBACK and not open_store(settings.database_url).tokens.any_active():
        raise PreplayError(
            f"{host} can be reached by others, and there is no token yet.",
            fix="Make one with `preplay serve token create NAME`, or listen on 127.0.0.1.",
        )


def _settings(config: Path | None, **changes: str | None) -> "ServerConfig":
    from preplay_serve._config import load_server_config

    return load_server_config(config, **changes)


def _store(config: Path | None, state: str | None) -> "Store":
    from preplay_serve.store import open_store

    return open_store(_settings(config, state=state).database_url)
