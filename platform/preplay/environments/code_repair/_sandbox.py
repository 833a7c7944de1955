"""Untrusted code in a process of its own: many pieces in one start, each in a fork with limits."""

import json
import logging
import subprocess
import sys
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from preplay.errors import PreplayError

log = logging.getLogger(__name__)
_SCRIPT = Path(__file__).with_name("_sandbox_process.py")


@dataclass(frozen=True)
class SandboxConfig:
    """Limits of one piece of code.

    Args:
        seconds: CPU time for all of its inputs together; the wall clock stops it at 1 s + 5 times this.
        megabytes: Address space.
        strict: Refuse to run anything where the machine does not allow the network and the file system to be cut
            off (user namespaces may be disabled); else a warning says what is missing; limits and audit hook stay.
    """

    seconds: float = 0.5
    megabytes: int = 512
    strict: bool = False

    def __post_init__(self):
        if self.seconds <= 0 or self.megabytes < 64:
            raise ValueError(f"limits too small: {self}")


@dataclass(frozen=True)
class Job:
    """Code, the function to call, and the arguments of each call (plain Python values)."""

    code: str
    function: str
    inputs: tuple[tuple[Any, ...], ...]


@dataclass(frozen=True)
class JobResult:
    """``status`` is ok, error (the code did not load), timeout or crash; one output per input when ok.

    An output is ``{"value": text of a plain value}`` or ``{"error": why there is none}``.
    """

    status: str
    message: str
    outputs: tuple[dict[str, str], ...]


@dataclass(frozen=True)
class Isolation:
    """What the machine allowed to be cut off."""

    network: bool
    files: bool


class Sandbox:
    """A process that stays up for many jobs; it ends with this object."""

    def __init__(self, config: SandboxConfig | None = None):
        self.config = config or SandboxConfig()
        self.isolation: Isolation | None = None
        self._process: subprocess.Popen[str] | None = None

    def run(self, jobs: Sequence[Job]) -> list[JobResult]:
        """Run jobs one after the other, each in a fork of its own."""
        process = self._start()
        return [_decode(_ask(process, _encode(job)), job) for job in jobs]

    def close(self) -> None:
        """End the process; a later run starts another."""
        if self._process is not None:
            self._finalizer()
            self._process = None

    def _start(self) -> subprocess.Popen[str]:
        if self._process is not None and self._process.poll() is None:
            return self._process
        command = [sys.executable, "-I", "-S", "-B", str(_SCRIPT)]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={})
        self._finalizer = weakref.finalize(self, _end, process)
        settings = {"seconds": self.config.seconds, "megabytes": self.config.megabytes}
        self.isolation = Isolation(**json.loads(_ask(process, json.dumps(settings))))
        _check(self.isolation, self.config)
        self._process = process
        return process


def run_jobs(jobs: Sequence[Job], config: SandboxConfig | None = None) -> tuple[list[JobResult], Isolation]:
    """Run jobs in a sandbox of their own; also what the machine allowed to be cut off."""
    sandbox = Sandbox(config)
    try:
        results = sandbox.run(jobs)
        return results, sandbox.isolation or Isolation(network=False, files=False)
    finally:
        sandbox.close()


def _ask(process: subprocess.Popen[str], line: str) -> str:
    """One line in, one line out: neither side ever waits for a full pipe."""
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(line + "\n")
        process.stdin.flush()
        answer = process.stdout.readline()
    except BrokenPipeError:
        answer = ""
    if not answer:
        raise PreplayError(
            "the sandbox process ended.", where="code-repair grader", fix="Look for its message above."
        )
    return answer


def _end(process: subprocess.Popen[str]) -> None:
    if process.stdin is not None:
        process.stdin.close()
    process.wait()
    if process.stdout is not None:
        process.stdout.close()


def _check(isolation: Isolation, config: SandboxConfig) -> None:
    missing = [
        name for name, cut in (("network", isolation.network), ("file system", isolation.files)) if not cut
    ]
    if missing and config.strict:
        raise PreplayError(
            f"this machine does not let the sandbox cut off: {', '.join(missing)}.",
            fix="Allow user namespaces, run as root in a container, or set strict=False for code you trust.",
        )
    if missing:
        log.warning("the sandbox could not cut off: %s; limits and audit hook remain.", ", ".join(missing))


def _encode(job: Job) -> str:
    inputs = [repr(arguments) for arguments in job.inputs]
    return json.dumps({"code": job.code, "function": job.function, "inputs": inputs})


def _decode(line: str, job: Job) -> JobResult:
    """The code may have written anything into its own answer: what has not the expected shape is a crash."""
    answer = json.loads(line)
    outputs = answer.get("outputs", []) if isinstance(answer, dict) else None
    shaped = isinstance(outputs, list) and all(
        isinstance(o, dict) and all(isinstance(v, str) for v in o.values()) for o in outputs
    )
    if not shaped or (answer.get("status") == "ok" and len(outputs or []) != len(job.inputs)):
        return JobResult("crash", "its answer was no answer", ())
    return JobResult(str(answer.get("status")), str(answer.get("message", "")), tuple(outputs or ()))
