"""Grades code against public and hidden tests; every distinct piece of code is run once."""

import ast
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from preplay.environments.code_repair._sandbox import Isolation, Job, JobResult, Sandbox, SandboxConfig
from preplay.environments.code_repair._task import Task


@dataclass(frozen=True)
class Grade:
    """Result of one piece of code on one task.

    ``status`` is the sandbox's; ``report`` says per public test what came out, as the agent sees it.
    """

    public_passed: int
    public_total: int
    hidden_passed: int
    hidden_total: int
    status: str
    report: str

    @property
    def public_ok(self) -> bool:
        """All public tests passed."""
        return self.public_passed == self.public_total

    @property
    def solved(self) -> bool:
        """All tests passed."""
        return self.public_ok and self.hidden_passed == self.hidden_total


class Grader:
    """Runs code in the sandbox and remembers every grade by the hash of task and code."""

    def __init__(self, config: SandboxConfig | None = None):
        self._sandbox = Sandbox(config)
        self.executed = 0
        self._grades: dict[bytes, Grade] = {}
        self._outputs: dict[bytes, tuple[str, ...]] = {}
        self._expected: dict[str, list[Any]] = {}

    @property
    def isolation(self) -> Isolation | None:
        """What the machine allowed to be cut off; None before the first grade."""
        return self._sandbox.isolation

    def close(self) -> None:
        """End the sandbox process now rather than with this object."""
        self._sandbox.close()

    def grade(self, task: Task, code: str) -> Grade:
        """Grade one piece of code."""
        return self.grade_many([(task, code)])[0]

    def grade_many(self, work: Sequence[tuple[Task, str]]) -> list[Grade]:
        """Grade many at once."""
        keys = [_key(task, code) for task, code in work]
        new = {key: item for key, item in zip(keys, work, strict=True) if key not in self._grades}
        self._learn_expected({task.name: task for task, _ in new.values()})
        results = self._run([Job(code, task.name, task.inputs) for task, code in new.values()])
        for (key, (task, _)), result in zip(new.items(), results, strict=True):
            self._grades[key] = _grade(task, result, self._expected[task.name])
        return [self._grades[key] for key in keys]

    def outputs_many(
        self, work: Sequence[tuple[Task, str]], inputs: tuple[tuple[Any, ...], ...]
    ) -> list[tuple[str, ...]]:
        """What each piece of code returns for these inputs, as text; ``!`` and the kind of failure where it does not.

        Code that does not load or does not end fails on all of them.
        """
        keys = [_key(task, f"{inputs!r}\0{code}") for task, code in work]
        new = {key: item for key, item in zip(keys, work, strict=True) if key not in self._outputs}
        results = self._run([Job(code, task.name, inputs) for task, code in new.values()])
        for key, result in zip(new, results, strict=True):
            shown = [_shown(output) for output in result.outputs]
            self._outputs[key] = (
                tuple(shown) if result.status == "ok" else (f"!{result.status}",) * len(inputs)
            )
        return [self._outputs[key] for key in keys]

    @staticmethod
    def public_passed(task: Task, outputs: Sequence[str]) -> int:
        """How many of the examples these outputs (of :meth:`outputs_many`) match."""
        values = [_value({"value": text}) for text in outputs]
        return sum(_same(value, want) for value, (_, want) in zip(values, task.public, strict=True))

    def _learn_expected(self, tasks: dict[str, Task]) -> None:
        unknown = [task for name, task in tasks.items() if name not in self._expected]
        if not unknown:
            return
        results = self._run([Job(task.reference, task.name, task.inputs) for task in unknown])
        for task, result in zip(unknown, results, strict=True):
            values = [_value(output) for output in result.outputs]
            if result.status != "ok" or any(value is _FAILED for value in values):
                raise AssertionError(f"the reference of {task.name} fails: {result}")
            self._expected[task.name] = values

    def _run(self, jobs: list[Job]) -> list[JobResult]:
        self.executed += len(jobs)
        return self._sandbox.run(jobs) if jobs else []


_FAILED = object()


def _grade(task: Task, result: JobResult, expected: list[Any]) -> Grade:
    public, hidden = len(task.public), len(task.hidden)
    if result.status != "ok":
        return Grade(0, public, 0, hidden, result.status, f"{result.status}: {result.message}")
    passed = [_same(_value(out), want) for out, want in zip(result.outputs, expected, strict=True)]
    lines = [
        f"{task.name}{arguments!r}: {'passed' if ok else _failure(out, want)}"
        for (arguments, want), ok, out in zip(task.public, passed, result.outputs, strict=False)
    ]
    return Grade(sum(passed[:public]), public, sum(passed[public:]), hidden, "ok", "\n".join(lines))


def _failure(output: dict[str, str], want: Any) -> str:
    got = (
        f"returned {output['value'][:80]}" if "value" in output else f"raised {output.get('error', '')[:80]}"
    )
    return f"{got}, expected {want!r}"


def _shown(output: dict[str, str]) -> str:
    """A value's text; of an error its kind, because two errors of a kind say the same."""
    return output["value"] if "value" in output else f"!{output.get('error', '').split(':')[0]}"


def _value(output: dict[str, str]) -> Any:
    try:
        return ast.literal_eval(output["value"])
    except (KeyError, ValueError, SyntaxError, RecursionError, MemoryError):
        return _FAILED


def _same(got: Any, want: Any) -> bool:
    """Equal values; True is not 1, but 2 is 2.0."""
    return isinstance(got, bool) == isinstance(want, bool) and got == want


def _key(task: Task, code: str) -> bytes:
    return hashlib.sha256(f"{task.name}\0{code}".encode("utf-8", "surrogatepass")).digest()
