"""Agent logs in any format, read, checked and kept as turns."""

from preplay.logs._schema import SCHEMA_VERSION, TURN_SCHEMA

__all__ = ["SCHEMA_VERSION", "TURN_SCHEMA"]
