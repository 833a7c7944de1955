"""Logged log-probabilities, checked row by row before anything is divided by them.

Shapes: N rows.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from preplay.errors import PreplayError

_SAMPLING_FIELDS = ("top_p", "top_k", "temperature", "min_p", "repetition_penalty", "logit_bias")
_MESSAGES = {
    "missing": "no log-probability",
    "not a number": "the log-probability is NaN",
    "impossible": "the log-probability is −inf: the action could not have been logged",
    "positive": "the log-probability is above 0: a probability or a density, not its logarithm",
}


@dataclass(frozen=True)
class PropensityCheck:
    """Which rows have a usable log-probability, and what else looks wrong.

    Args:
        valid: bool [N].
        counts: Reason → rows quarantined.
        messages: One sentence per reason, with the first row.
        warnings: What cannot be told from one row alone.
    """

    valid: np.ndarray
    counts: dict[str, int] = field(default_factory=dict)
    messages: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def check_log_probs(
    log_prob: Sequence[float | None] | np.ndarray,
    *,
    extras: Sequence[str] = (),
    sources: Sequence[str] = (),
    at_most: float = 1e-6,
) -> PropensityCheck:
    """Quarantine unusable rows with a reason; warn of what makes all rows suspicious.

    Args:
        log_prob: N log-probabilities of the logged actions; None where there is none.
        extras: The rows' JSON extras, searched for sampling settings.
        sources: The rows' ``file:line``, for the messages.
        at_most: Log-probabilities up to this are rounding of 0 and kept.
    """
    missing = np.array([v is None for v in log_prob], bool) if len(log_prob) else np.zeros(0, bool)
    values = np.array([np.nan if v is None else v for v in log_prob], np.float64)
    faults = {
        "missing": missing,
        "not a number": np.isnan(values) & ~missing,
        "impossible": np.isneginf(values),
        "positive": values > at_most,
    }
    counts = {reason: int(hit.sum()) for reason, hit in faults.items() if hit.any()}
    messages = [_message(reason, faults[reason], sources) for reason in counts]
    valid = ~np.logical_or.reduce(list(faults.values()))
    warnings = [*_scale_warnings(values, valid, counts), *_sampling_warnings(extras)]
    return PropensityCheck(valid, counts, messages, warnings)


def require_propensities(check: PropensityCheck) -> None:
    """Refuse a log without any usable log-probability.

    Raises:
        PreplayError: With the reasons found.
    """
    if not check.valid.any():
        raise PreplayError(
            "; ".join(check.messages) or "there are no log-probabilities.",
            fix="Log behaviour_logprob, or estimate propensities from action clusters.",
        )


def _message(reason: str, hit: np.ndarray, sources: Sequence[str]) -> str:
    row = int(np.argmax(hit))
    where = sources[row] if row < len(sources) else f"row {row}"
    return f"{int(hit.sum())} rows: {_MESSAGES[reason]} (first: {where})"


def _scale_warnings(values: np.ndarray, valid: np.ndarray, counts: dict[str, int]) -> list[str]:
    warnings, good = [], values[valid]
    if counts.get("positive", 0) > 0.01 * len(values):
        share = counts["positive"] / len(values)
        warnings.append(
            f"{share:.0%} of the values are above 0: if they are probabilities take their logarithm; if they are "
            "densities they cannot be compared between policies with other units."
        )
    if len(good) > 1 and np.ptp(good) < 1e-12:
        probability = float(np.exp(good[0]))
        if probability > 1 - 1e-9:
            text = "every logged action has probability 1: this looks like a default, not a measurement"
        else:
            text = f"every logged action has the same probability {probability:.4g}: right only for a uniform policy"
        warnings.append(f"{text}.")
    return warnings


def _sampling_warnings(extras: Sequence[str]) -> list[str]:
    """Rows sampled with top-p or a temperature whose log-probabilities may be those of the untouched model."""
    seen: dict[str, int] = {}
    for text in extras:
        if not any(f'"{name}"' in text for name in _SAMPLING_FIELDS):
            continue
        for name, value in _settings(json.loads(text)):
            if not _neutral(name, value):
                seen[name] = seen.get(name, 0) + 1
    if not seen:
        return []
    fields = ", ".join(f"{name} ({count} rows)" for name, count in sorted(seen.items()))
    return [
        f"The records set {fields}: log-probabilities reported by an engine are often those of the model before this "
        "change. Ratios are right only if both policies' log-probabilities are of the distribution sampled from."
    ]


def _settings(record: object) -> list[tuple[str, object]]:
    """All sampling settings in nested JSON."""
    if isinstance(record, list):
        return [pair for item in record for pair in _settings(item)]
    if not isinstance(record, dict):
        return []
    own = [(name, record[name]) for name in _SAMPLING_FIELDS if name in record]
    return own + [pair for value in record.values() for pair in _settings(value)]


def _neutral(name: str, value: object) -> bool:
    """Whether the setting leaves the distribution as it is."""
    neutral = {"top_p": 1, "temperature": 1, "top_k": -1, "min_p": 0, "repetition_penalty": 1}
    return value is None or value in ({}, []) or (name in neutral and value == neutral[name])
