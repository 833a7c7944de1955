"""Environments by name."""

from preplay.environments._protocol import Environment
from preplay.environments.support_desk import DEFAULT, LONG, SupportDesk
from preplay.errors import PreplayError

ENVIRONMENTS: dict[str, Environment] = {
    "support_desk": SupportDesk("support_desk", DEFAULT),
    "support_desk_long": SupportDesk("support_desk_long", LONG),
}


def get_environment(name: str) -> Environment:
    """The environment of this name.

    Raises:
        PreplayError: When there is none; the message lists the names.
    """
    if name not in ENVIRONMENTS:
        raise PreplayError(
            f"there is no environment {name!r}.", fix=f"Known: {', '.join(sorted(ENVIRONMENTS))}."
        )
    return ENVIRONMENTS[name]
