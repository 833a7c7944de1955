"""Logs as JSON lines: time, level, message, request id and named fields. Texts of requests never get in."""

import atexit
import datetime as dt
import json
import logging
import sys
import threading
import time
from queue import Empty, SimpleQueue

from preplay_serve.api._context import request_id

_GATHER_S = 0.05


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


class _Gathered(logging.Handler):
    """Writes what came in a twentieth of a second at once, in a thread of its own: no request waits for its line."""

    def __init__(self):
        super().__init__()
        self._lines: SimpleQueue[str] = SimpleQueue()
        threading.Thread(target=self._write, name="logs", daemon=True).start()
        atexit.register(self.flush)

    def emit(self, record: logging.LogRecord) -> None:
        """Take a line."""
        self._lines.put(self.format(record))

    def flush(self) -> None:
        """Write what is there."""
        text = ""
        try:
            while True:
                text += self._lines.get_nowait() + "\n"
        except Empty:
            sys.stderr.write(text)
            sys.stderr.flush()

    def _write(self) -> None:
        while True:
            time.sleep(_GATHER_S)
            if not self._lines.empty():
                self.flush()


def configure_logs() -> None:
    """Send the server's loggers to standard error; once per process."""
    logger = logging.getLogger("preplay_serve")
    if not logger.handlers:
        handler = _Gathered()
        handler.setFormatter(_JsonLines())
        logger.addHandler(handler)
        logger.setLevel(logging.INFO)
        logger.propagate = False
