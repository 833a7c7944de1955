"""What an estimator is, and the registry of those that come with preplay."""

from collections.abc import Sequence
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np

from preplay.errors import PreplayError
from preplay.estimators._batch import SessionBatch


@runtime_checkable
class Estimator(Protocol):
    """Sessions in, a value out, by way of statistics that add up over shards.

    ``id`` is ``name/version``; the version rises whenever the same input would give another number.
    ``needs`` names the arrays of a ``SessionBatch`` it reads besides the rewards.
    """

    @property
    def id(self) -> str: ...

    @property
    def needs(self) -> tuple[str, ...]: ...

    def statistics(self, batch: SessionBatch) -> Any:
        """Sufficient statistics of these sessions; ``+`` merges those of several shards."""
        ...

    def value(self, stats: Any) -> float:
        """The estimate; NaN where it is undefined."""
        ...

    def resampled(self, batch: SessionBatch, resamples: int, seed: int) -> np.ndarray:
        """The estimate on ``resamples`` bootstrap resamples of the sessions, float64 [resamples].

        Equal seeds draw equal resamples of equal logs, so that estimates can be compared in pairs.
        """
        ...

    def influence(self, batch: SessionBatch) -> np.ndarray:
        """First-order effect of each session on the estimate, float64 [S], mean 0.

        The estimate's sampling error is about the mean of these; their variance over S is its variance.
        """
        ...


_REGISTRY: dict[str, Estimator] = {}
T = TypeVar("T", bound=Estimator)


def register(estimator: T) -> T:
    """Make an estimator known under its name (the id without its version), in place of preplay's own of that name."""
    _REGISTRY[estimator.id.split("/")[0]] = estimator
    return estimator


def register_own(estimator: Estimator) -> None:
    """Make one of preplay's known. They are imported late, and take no name that somebody else has registered."""
    _REGISTRY.setdefault(estimator.id.split("/")[0], estimator)


def get_estimator(name: str) -> Estimator:
    """The estimator called ``name``, with or without its version.

    Raises:
        PreplayError: When there is none, or the version is another one.
    """
    short = name.split("/")[0]
    found = _registered().get(short)
    if found is None or ("/" in name and found.id != name):
        raise PreplayError(f"there is no estimator {name!r}.", fix=f"Known: {', '.join(available())}.")
    return found


def available(arrays: Sequence[str] | None = None) -> list[str]:
    """Names of the estimators; of those that get by with ``arrays`` when given."""
    return [n for n, e in sorted(_registered().items()) if arrays is None or set(e.needs) <= set(arrays)]


def _registered() -> dict[str, Estimator]:
    from preplay.estimators import _estimators, _magic, _marginal  # noqa: F401  (they register preplay's own)

    return _REGISTRY
