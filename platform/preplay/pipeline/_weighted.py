"""The logged sessions as they count for one target: its ratios, and more weight for the loggers nearest to it."""

from dataclasses import dataclass, field, replace

import numpy as np

from preplay.estimators import SessionBatch, logger_weights, weigh_loggers
from preplay.pipeline._context import Context


@dataclass(frozen=True)
class WeightedSessions:
    """Logged sessions with a target's ratios.

    Args:
        batch: ``log_ratio`` is None without propensities.
        loggers: What a session of each logging policy counts; empty for a single one, or without propensities.
        starts_differ: The logging policy whose sessions start elsewhere, for which all count the same.
    """

    batch: SessionBatch
    loggers: dict[str, float] = field(default_factory=dict)
    starts_differ: str | None = None


def weighted_sessions(context: Context, log_ratio: np.ndarray | None) -> WeightedSessions:
    """Weigh the loggers where there are several and their sessions start alike."""
    batch = replace(context.batch, log_ratio=log_ratio)
    names = context.data.session_policy.astype(str)
    if log_ratio is None or len(np.unique(names)) < 2:
        return WeightedSessions(batch)
    if context.starts_differ:
        return WeightedSessions(batch, dict.fromkeys(np.unique(names).tolist(), 1.0), context.starts_differ)
    weights = logger_weights(batch, names)
    return WeightedSessions(weigh_loggers(batch, names, weights), weights)
