"""Policies that are plain Python: a function of the state, or an object that satisfies ``Policy``."""

import importlib
import inspect
import sys
from collections.abc import Callable, Hashable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from preplay.errors import PreplayError
from preplay.policies._protocol import ActionBatch, AgentState, Policy
from preplay.seeding import numpy_rng

_SHAPE = (
    "Give a function (state_text: str) -> str or (state: AgentState) -> str, or a class or object with act()."
)


class FunctionPolicy:
    """A function as a policy. It is asked once per state of a batch.

    Args:
        function: Called with the state's text, or with the ``AgentState`` when its parameter is annotated so.
            Its attributes ``deterministic`` (default true) and ``reads`` (default 2) are honoured.
        name: Name in reports.
    """

    def __init__(self, function: Callable[[Any], Any], name: str):
        self.name = name
        self.reads = int(getattr(function, "reads", 2))
        self.deterministic = bool(getattr(function, "deterministic", True))
        self._function = function
        self.takes_text = not _wants_state(function)

    def act(self, states: Sequence[AgentState], rng: np.random.Generator) -> ActionBatch:
        """One answer per state; ``rng`` is not used."""
        return ActionBatch([self._ask(state) for state in states])

    def _ask(self, state: AgentState) -> str:
        answer = self._function(state.text if self.takes_text else state)
        if not isinstance(answer, str):
            raise PreplayError(
                f"policy {self.name!r} answered {type(answer).__name__} {answer!r} instead of text.",
                where=f"state {state.text[-200:]!r}",
                fix="Return a str from the policy function.",
            )
        return answer


class AnswerCache:
    """Asks a deterministic policy once per distinct state.

    Args:
        policy: The deterministic policy.
        key: What tells states apart; its text where the policy sees nothing else, the whole state by default.
    """

    deterministic = True

    def __init__(self, policy: Policy, key: Callable[[AgentState], Hashable] = lambda state: state):
        if not policy.deterministic:
            raise ValueError(f"answers of policy {policy.name!r} vary, so they cannot be cached")
        self.name, self.reads = policy.name, policy.reads
        self._policy, self._key = policy, key
        self._answers: dict[Hashable, str] = {}

    def act(self, states: Sequence[AgentState], rng: np.random.Generator) -> ActionBatch:
        """One answer per state; ``rng`` is left alone, so caching changes nothing else."""
        keys = [self._key(state) for state in states]
        new = {key: state for key, state in zip(keys, states, strict=True) if key not in self._answers}
        if new:
            asked = self._policy.act(list(new.values()), numpy_rng(0, "deterministic policy"))
            self._answers.update(zip(new, asked.actions, strict=True))
        return ActionBatch([self._answers[key] for key in keys])


def state_text(state: AgentState) -> str:
    """The key for policies that see the state's text only."""
    return state.text


def python_policy(path: str) -> Policy:
    """The policy named by ``module:attribute``.

    Raises:
        PreplayError: When the module or attribute is missing, or it cannot be used as a policy.
    """
    module_name, _, attribute = path.partition(":")
    where = f"python:{path}"
    if not module_name or not attribute:
        raise PreplayError("a Python policy is written python:module:attribute.", where=where)
    found = _attribute(_import(module_name, where), attribute, where)
    if isinstance(found, type):
        found = _instance(found, where)
    if isinstance(found, Policy):
        return AnswerCache(found) if found.deterministic else found
    if not callable(found):
        raise PreplayError(f"{attribute} is a {type(found).__name__}, not a policy.", where=where, fix=_SHAPE)
    _check_parameters(found, where)
    policy = FunctionPolicy(found, name=path)
    if not policy.deterministic:
        return policy
    return AnswerCache(policy, state_text) if policy.takes_text else AnswerCache(policy)


def _import(name: str, where: str) -> ModuleType:
    """Import a module, also from the current folder (a console script does not look there by itself)."""
    folder = str(Path.cwd())
    if folder not in sys.path:
        sys.path.append(folder)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise PreplayError(
                f"{name} needs the module {error.name!r}, which is not installed.", where=where
            ) from error
        raise PreplayError(
            f"there is no module {name!r}.",
            where=where,
            fix="Run from the folder that holds it, or put that folder on PYTHONPATH.",
        ) from error
    except SyntaxError as error:
        raise PreplayError(f"{name} does not parse: {error}.", where=where) from error


def _attribute(module: ModuleType, name: str, where: str) -> Any:
    if not hasattr(module, name):
        known = ", ".join(n for n, v in vars(module).items() if callable(v) and not n.startswith("_"))
        raise PreplayError(
            f"the module has no {name!r}.", where=where, fix=f"It has: {known or 'nothing callable'}."
        )
    return getattr(module, name)


def _instance(kind: type, where: str) -> Any:
    parameters = _parameters(kind)
    required = [p.name for p in parameters if p.default is p.empty]
    if required:
        raise PreplayError(
            f"{kind.__name__} cannot be created without {', '.join(required)}.",
            where=where,
            fix="Name an instance in the module instead of the class.",
        )
    policy = kind()
    if not isinstance(policy, Policy):
        missing = [n for n in ("name", "reads", "deterministic", "act") if not hasattr(policy, n)]
        raise PreplayError(f"{kind.__name__} lacks {', '.join(missing)}.", where=where, fix=_SHAPE)
    return policy


def _check_parameters(function: Callable[..., Any], where: str) -> None:
    parameters = _parameters(function)
    required = [p for p in parameters if p.default is p.empty]
    if len(required) > 1 or not parameters:
        raise PreplayError(
            f"the function takes {len(required)} arguments instead of one, the state.",
            where=where,
            fix=_SHAPE,
        )


def _parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    try:
        signature = inspect.signature(function)
    except ValueError:  # some built-ins have no signature
        return [inspect.Parameter("state", inspect.Parameter.POSITIONAL_ONLY)]
    return [p for p in signature.parameters.values() if p.kind in kinds]


def _wants_state(function: Callable[..., Any]) -> bool:
    parameters = _parameters(function)
    annotation = parameters[0].annotation if parameters else None
    return annotation is AgentState or (isinstance(annotation, str) and annotation.endswith("AgentState"))
