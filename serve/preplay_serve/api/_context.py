"""The id of the request that is being answered, for its answer and the log."""

import re
import secrets
from contextvars import ContextVar

_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_current: ContextVar[str] = ContextVar("request_id", default="")


def request_id() -> str:
    """The current request's id."""
    return _current.get()


def begin_request(given: str | None) -> str:
    """Take the caller's id when it is harmless, else a new one."""
    value = given if given and _ID.fullmatch(given) else secrets.token_hex(8)
    _current.set(value)
    return value
