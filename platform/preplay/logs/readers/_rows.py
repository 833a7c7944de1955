"""Values of numeric environments as text, one row of an array at a time."""

from typing import Any

from preplay.logs._check import text_of


def row_text(value: Any) -> str:
    """An observation or action as text: text as it is, numbers and structures as canonical JSON."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    return text_of(value.tolist() if hasattr(value, "tolist") else value)
