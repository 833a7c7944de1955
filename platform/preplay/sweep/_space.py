"""What a sweep searches: distributions of fields, some of them only where another has a certain value."""

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

import optuna
from pydantic import BaseModel, ConfigDict, model_validator

Value = bool | int | float | str | None
Parameters = dict[str, Value]
"""Values by dotted field path: ``{"optimiser.learning_rate": 0.002}``."""

_KINDS = ("choice", "uniform", "loguniform", "randint")


class Parameter(BaseModel):
    """One field's distribution; exactly one of the four kinds is given.

    Args:
        choice: One of these values.
        uniform: A number between both ends.
        loguniform: A number between both ends, uniform in its logarithm.
        randint: A whole number, both ends included.
        when: The field is searched only where each of these fields has one of the listed values; elsewhere it keeps
            the value of ``base``.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    choice: tuple[Value, ...] | None = None
    uniform: tuple[float, float] | None = None
    loguniform: tuple[float, float] | None = None
    randint: tuple[int, int] | None = None
    when: dict[str, tuple[Value, ...]] = {}

    @model_validator(mode="after")
    def _one_kind(self) -> "Parameter":
        given = [kind for kind in _KINDS if getattr(self, kind) is not None]
        if len(given) != 1:
            raise ValueError(f"give exactly one of {', '.join(_KINDS)} (got {', '.join(given) or 'none'})")
        if self.choice is not None:
            if not self.choice:
                raise ValueError("choice has no values")
            return self
        low, high = getattr(self, given[0])
        if low >= high or (self.loguniform and low <= 0):
            raise ValueError(f"{given[0]} needs low < high{' and low > 0' if self.loguniform else ''}")
        return self

    def active(self, chosen: Mapping[str, Value]) -> bool:
        """Whether the conditions hold."""
        return all(name in chosen and chosen[name] in allowed for name, allowed in self.when.items())

    def suggest(self, trial: optuna.Trial, name: str) -> Value:
        """Ask Optuna for a value."""
        if self.choice is not None:
            return self.choice[trial.suggest_categorical(name, list(range(len(self.choice))))]
        if self.randint is not None:
            return trial.suggest_int(name, *self.randint)
        if self.loguniform is not None:
            return trial.suggest_float(name, *self.loguniform, log=True)
        assert self.uniform is not None
        return trial.suggest_float(name, *self.uniform)

    @property
    def example(self) -> Value:
        """A value that it may take."""
        if self.choice is not None:
            return self.choice[0]
        return (self.randint or self.loguniform or self.uniform)[0]  # pyright: ignore[reportOptionalSubscript]


Space = dict[str, Parameter]


def suggest(space: Space, trial: optuna.Trial) -> Parameters:
    """Values of all active fields, conditions first."""
    chosen: Parameters = {}
    for name in ordered(space):
        if space[name].active(chosen):
            chosen[name] = space[name].suggest(trial, name)
    return chosen


def grid(space: Space) -> list[Parameters]:
    """Every combination of the choices, each once, in the order of the file (the last field changes fastest)."""
    names = ordered(space)
    axes = [space[name].choice or () for name in names]
    found: dict[tuple, Parameters] = {}
    for values in itertools.product(*axes):
        chosen: Parameters = {}
        for name, value in zip(names, values, strict=True):
            if space[name].active(chosen):
                chosen[name] = value
        found.setdefault(tuple(chosen.items()), chosen)
    return list(found.values())


def ordered(space: Space) -> list[str]:
    """Fields so that each comes after those its conditions name.

    Raises:
        ValueError: When a condition names a field that is not searched, or conditions go in a circle.
    """
    done: list[str] = []
    left = dict(space)
    while left:
        ready = [name for name, parameter in left.items() if set(parameter.when) <= set(done)]
        if not ready:
            name, parameter = next(iter(left.items()))
            missing = [other for other in parameter.when if other not in space]
            problem = f"{missing[0]!r}, which is not searched" if missing else "fields in a circle"
            raise ValueError(f"the condition of {name!r} names {problem}")
        done += ready
        left = {name: parameter for name, parameter in left.items() if name not in ready}
    return done


def nested(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Dotted paths as nested mappings.

    >>> nested({"a.b": 1, "c": 2})
    {'a': {'b': 1}, 'c': 2}
    """
    result: dict[str, Any] = {}
    for path, value in parameters.items():
        *parents, last = path.split(".")
        place = result
        for parent in parents:
            place = place.setdefault(parent, {})
        place[last] = value
    return result


def flat(mapping: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Nested mappings as dotted paths."""
    for key, value in mapping.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value
