"""Processes of this test run, found through /proc: so that a test can kill its own worker, and no other."""

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path


def wait_for(condition: Callable[[], object], timeout: float = 120) -> None:
    """Poll until the condition holds."""
    deadline = time.monotonic() + timeout
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{condition} did not come true in {timeout} s")
        time.sleep(0.02)


def kill_one(root: int, name: str) -> int:
    """SIGKILL one process below ``root`` whose title starts with ``name``; returns its id."""
    pid = descendants(root, name)[0]
    os.kill(pid, signal.SIGKILL)
    return pid


def descendants(root: int, name: str) -> list[int]:
    """Process ids below ``root`` whose title starts with ``name``."""
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(stat.read_text().rpartition(")")[2].split()[1])
        except (FileNotFoundError, ProcessLookupError):
            continue
        children.setdefault(parent, []).append(int(stat.parent.name))
    found, queue = [], [root]
    while queue:
        queue += (below := children.get(queue.pop(), []))
        found += [pid for pid in below if _title(pid).startswith(name)]
    return sorted(found)


def _title(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return ""
