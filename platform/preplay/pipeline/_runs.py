"""One estimator on one batch with the configuration's level, resamples and seed; and what a model alone may claim."""

from collections.abc import Callable

import numpy as np

from preplay.estimators import Estimate, SessionBatch, evaluate_estimator, get_estimator
from preplay.pipeline._context import Context

Runner = Callable[..., Estimate]


def runner(context: Context, policy: str) -> Runner:
    """Calls ``evaluate_estimator``; labels ``model.*`` and ``fqe.*`` keep their family in the estimator's id."""
    settings = context.config.evaluation

    def run(label: str, batch: SessionBatch, name: str, **options: object) -> Estimate:
        estimate = evaluate_estimator(
            get_estimator(name),
            batch,
            policy=policy,
            level=settings.level,
            resamples=settings.resamples,
            seed=context.config.seed,
            **options,  # pyright: ignore[reportArgumentType]
        )
        family, _, _ = label.partition(".")
        prefix = f"{family}." if family in ("model", "fqe") else ""
        return estimate.model_copy(update={"estimator": f"{prefix}{estimate.estimator}"})

    return run


def with_members(estimate: Estimate, values: np.ndarray) -> Estimate:
    """A model's own estimate: the spread of the ensemble beside its sampling error, and never more than bounds.

    Such intervals do not hold: what a model gets wrong, all its members get wrong alike.
    """
    spread = float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else None
    return at_most_bounds(estimate, "What the model gets wrong is not in this interval.").model_copy(
        update={"epistemic_error": spread}
    )


def at_most_bounds(estimate: Estimate, reason: str) -> Estimate:
    """The estimate, its verdict lowered to ``bounds only`` for this reason."""
    if estimate.verdict != "estimate":
        return estimate
    return estimate.model_copy(update={"verdict": "bounds only", "reason": reason})
