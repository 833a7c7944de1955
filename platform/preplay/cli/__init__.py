"""The command line: ``preplay --help``."""

from preplay.cli._app import app, main

__all__ = ["app", "main"]
