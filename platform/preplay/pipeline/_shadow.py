"""The value of a policy known only by shadow actions: what it would do in the logged states, without rewards."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from preplay.backtest import AskedActions
from preplay.estimators import (
    Estimate,
    SessionIndex,
    ShadowActions,
    ShadowFile,
    align_shadow_actions,
    read_shadow_file,
    value_follows,
)
from preplay.pipeline._config import PreplayConfig
from preplay.pipeline._context import Context, EvaluationRequest, load_context
from preplay.pipeline._fqe import TargetActions, fqe_estimates
from preplay.pipeline._logged import embed_actions
from preplay.pipeline._runs import runner
from preplay.pipeline._structure import Structured, judge_asked
from preplay.pipeline._weighted import weighted_sessions

WEIGHTED = ("wpdis",)


@dataclass(frozen=True)
class ShadowResult:
    """What shadow actions say.

    Args:
        estimates: ``fqe.dm``; with logged propensities also ``wpdis``, ``fqe.dr`` and ``fqe.wdr``.
        agreement: Share of the logged actions that the new policy would have taken too.
        sessions: Number of logged sessions.
        structured: What the structure of tool calls says, and how good that was; None for plain text.
    """

    estimates: list[Estimate]
    agreement: float
    sessions: int
    structured: Structured | None = None


def evaluate_shadow(file: Path, request: EvaluationRequest, config: PreplayConfig) -> ShadowResult:
    """Fitted Q evaluation of the actions in ``file`` on the logs, corrected by the logs where they hold propensities.

    The share of a state's shadow actions that equal the logged one stands for its probability under the new policy:
    right on average for any number of independent samples, exact for a deterministic policy.

    Raises:
        PreplayError: When the file cannot be read or lacks a state, or the artifacts do not fit.
    """
    shadow = read_shadow_file(file)
    context = load_context(request, config)
    aligned = _aligned(context, shadow.session_id, shadow.turn, shadow.action)
    run = runner(context, file.stem)
    batch = weighted_sessions(context, _log_ratio(context, aligned.logged_share)).batch
    found = {}
    if batch.log_ratio is not None:
        found |= {name: run(name, batch, name) for name in WEIGHTED}
    actions = TargetActions(
        aligned.start_features, aligned.next_features, aligned.start_weights, aligned.next_weights
    )
    found |= fqe_estimates(context, batch, actions, run)
    structured = judge_asked(context, file.stem, _asked(context, shadow))
    if structured and (estimate := structured.estimate(file.stem, context)):
        found["structure"] = estimate
    agreement = float(np.nanmean(aligned.logged_share))
    return ShadowResult(list(found.values()), agreement, batch.n_sessions, structured)


def _asked(context: Context, shadow: ShadowFile) -> AskedActions:
    """The first shadow action of every logged state, without those behind the last turn of a session."""
    turns = context.data.turns
    states = zip(turns["session_id"].to_pylist(), turns["turn"].to_pylist(), strict=True)
    row = {state: i for i, state in enumerate(states)}
    given = zip(shadow.session_id, shadow.turn.tolist(), strict=True)
    first: dict[int, str] = {}
    for state, action in zip(given, shadow.action, strict=True):
        if state in row:
            first.setdefault(row[state], action)
    rows = np.array(sorted(first), np.int64)
    return AskedActions(rows, [first[i] for i in rows.tolist()])


def _aligned(context: Context, session_id: list[str], turn: np.ndarray, action: list[str]) -> ShadowActions:
    turns, starts = context.data.turns, context.data.session_starts
    index = SessionIndex(
        np.arange(starts[-1]), starts, turns["session_id"].take(starts[:-1].tolist()).to_pylist()
    )
    truncated = turns["truncated"].to_numpy(zero_copy_only=False)
    return align_shadow_actions(
        index,
        value_follows(starts, context.turns.terminated, truncated, context.model.horizon),
        session_id,
        turn,
        embed_actions(context.model, context.encoder.encode(action)),
        keys=action,
        logged_keys=turns["action"].to_pylist(),
    )


def _log_ratio(context: Context, share: np.ndarray) -> np.ndarray | None:
    """log of (share of shadow actions that equal the logged one / logged probability); None without either."""
    behavior = context.data.turns["behavior_logprob"].to_numpy(zero_copy_only=False).astype(np.float64)
    if np.isnan(behavior).any() or np.isnan(share).any():
        return None
    with np.errstate(divide="ignore"):
        return np.log(share) - behavior
