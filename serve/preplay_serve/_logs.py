"""Logs as JSON lines: time, level, message, request id and named fields. Texts of requests never get in."""

import datetime as dt
import json
import logging
import sys

from preplay_serve.api._context import request_id


class _JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        when = dt.datetime.fromtimestamp(record.created, dt.UTC).isoformat(timespec="milliseconds")
        line = {
            "time": when,
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        line |= {"request_id": request_id()} if request_id() else {}
        return json.dumps(line | getattr(record, "fields", {}))


def configure_logs() -> None:
    """Send the server's loggers to standard error; once per process."""
    logger = logging.getLogger("preplay_serve")
    if not logger.handlers:
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(_JsonLines())
        logger.addHandler(handler)
        logger.setLevel(logging.INFO)
        logger.propagate = False
