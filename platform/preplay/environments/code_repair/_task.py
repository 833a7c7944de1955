"""A task: what a function should do, how it is done right, and on what it is tried."""

import ast
import inspect
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, eq=False)
class Task:
    """One function to be written.

    Args:
        name: Name of the task and of its function.
        signature: ``name(arguments)``.
        description: What it does, in one sentence or two.
        reference: A right solution, as source without comments.
        public: Examples (arguments, result) that the agent sees.
        hidden: Arguments of the hidden tests; what is right there, the reference decides.
    """

    name: str
    signature: str
    description: str
    reference: str
    public: tuple[tuple[tuple[Any, ...], Any], ...]
    hidden: tuple[tuple[Any, ...], ...]

    @property
    def prompt(self) -> str:
        """The task as the agent reads it."""
        shown = "\n".join(f"assert {self.name}({_arguments(a)}) == {r!r}" for a, r in self.public)
        return f"Write the function {self.signature}.\n{self.description}\nExamples:\n{shown}"

    @property
    def inputs(self) -> tuple[tuple[Any, ...], ...]:
        """Arguments of all tests, the public ones first."""
        return tuple(arguments for arguments, _ in self.public) + self.hidden


class TaskList:
    """Collects tasks; used as a decorator on their right solutions, whose docstring is the description."""

    def __init__(self):
        self.tasks: list[Task] = []

    def add(
        self, public: Sequence[tuple[tuple[Any, ...], Any]], hidden: Sequence[tuple[Any, ...]]
    ) -> Callable[[F], F]:
        """Decorator: register a function as a task."""

        def register(function: F) -> F:
            source = _bare(function)
            name = function.__name__
            signature = f"{name}{inspect.signature(function)}"
            description = " ".join((function.__doc__ or "").split())
            self.tasks.append(Task(name, signature, description, source, tuple(public), tuple(hidden)))
            return function

        return register


def _bare(function: Callable[..., Any]) -> str:
    """Source of a function without decorator and docstring."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    definition = tree.body[0]
    assert isinstance(definition, ast.FunctionDef)
    definition.decorator_list = []
    definition.body = definition.body[1:]
    return ast.unparse(definition) + "\n"


def _arguments(arguments: tuple[Any, ...]) -> str:
    return ", ".join(map(repr, arguments))
