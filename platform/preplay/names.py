"""Names of published models: ``models:NAME`` is the newest version, ``models:NAME@2`` the second.

Versions are folders ``<registry>/NAME/v1``, ``v2``, ... that are never written again. The registry is the folder in
the environment variable ``PREPLAY_MODELS``, by default ``runs/models`` in the current one.
"""

import os
import re
from pathlib import Path

from preplay.errors import PreplayError

SCHEME = "models:"
_NAME = re.compile(r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")


def registry() -> Path:
    """Folder of the published models."""
    return Path(os.environ.get("PREPLAY_MODELS", "runs/models")).absolute()


def versions(name: str) -> list[int]:
    """Published versions of a name, ascending."""
    found = [path.parent.name for path in (registry() / name).glob("v*/manifest.json")]
    return sorted(int(folder[1:]) for folder in found if folder[1:].isdigit())


def published_path(uri: str) -> Path:
    """Folder behind ``models:NAME`` or ``models:NAME@VERSION``.

    Raises:
        PreplayError: When there is no such name or version.
    """
    name, _, version = uri.removeprefix(SCHEME).partition("@")
    known = versions(name) if _NAME.match(name) else []
    wanted = int(version) if version.isdigit() else (known[-1] if known and not version else None)
    if wanted not in known:
        shown = ", ".join(f"{name}@{v}" for v in known) or "none of this name"
        raise PreplayError(f"no published model {uri!r}.", where=str(registry()), fix=f"There are: {shown}.")
    return registry() / name / f"v{wanted}"


def next_version(name: str) -> Path:
    """Folder that the next version of a name goes to.

    Raises:
        PreplayError: When the name cannot be a folder's.
    """
    if not _NAME.match(name):
        raise PreplayError(f"{name!r} cannot name a model.", fix="Use letters, digits, '.', '_' and '-'.")
    return registry() / name / f"v{max(versions(name), default=0) + 1}"
