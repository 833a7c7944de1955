"""The one error type that users see: what is wrong, where, and what to do about it."""

from functools import partial
from typing import Any


class PreplayError(Exception):
    """An error the user can act on; the command line prints it without a stack trace.

    Args:
        what: What is wrong, in plain words, with the offending value.
        where: File, line and field (``logs.jsonl:12, field 'reward'``), or the artifact's path.
        fix: What the user can do now.
    """

    def __init__(self, what: str, *, where: str | None = None, fix: str | None = None):
        self.what, self.where, self.fix = what, where, fix
        super().__init__(what, where, fix)

    def __str__(self) -> str:
        where = f"{self.where}: " if self.where else ""
        fix = f" {self.fix}" if self.fix else ""
        return f"{where}{self.what}{fix}"

    def __reduce__(self) -> tuple[Any, ...]:
        """Raised in an actor, it travels to the driver; its arguments are keywords, so say how to rebuild it."""
        return partial(type(self), where=self.where, fix=self.fix), (self.what,)
