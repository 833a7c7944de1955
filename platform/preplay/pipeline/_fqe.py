"""Fitted Q evaluation on phi, alone and corrected, from what the target policy would do in the logged states.

S sessions, R turns, K actions per state, DA action features.
"""

from dataclasses import dataclass, replace

import numpy as np

from preplay.embedding import EmbeddedTurns
from preplay.estimators import Estimate, Evidence, FQEInputs, SessionBatch, fit_fqe
from preplay.pipeline._context import Context
from preplay.pipeline._logged import logged_states, sampled_actions, some_sessions
from preplay.pipeline._runs import Runner, with_members
from preplay.policies import Policy

CORRECTED = ("dr", "wdr")


@dataclass(frozen=True)
class TargetActions:
    """What the target policy does in the logged states.

    Args:
        start: float32 [S, K, DA], in the first states; ``following``: float32 [R, K, DA], in the states that follow.
        start_weights, following_weights: float64, summing to 1 over K; equal when absent.
    """

    start: np.ndarray
    following: np.ndarray
    start_weights: np.ndarray | None = None
    following_weights: np.ndarray | None = None


def ask_and_estimate(
    context: Context, policy: Policy, batch: SessionBatch, run: Runner
) -> dict[str, Estimate]:
    """Ask the policy in the logged states, and estimate.

    A policy whose probabilities are not known may cost money per answer: it is asked in the states of at most
    ``evaluation.asked_sessions`` sessions, and only they are fitted.
    """
    if batch.log_ratio is not None:
        return fqe_estimates(context, batch, _asked_actions(context, context.data, policy), run)
    keep = some_sessions(context.data, context.config.evaluation.asked_sessions, context.config.seed)
    data = context.data.select_sessions(keep)
    actions = _asked_actions(context, data, policy)
    return fqe_estimates(context, batch.select(np.flatnonzero(keep)), actions, run, keep)


def fqe_estimates(
    context: Context, batch: SessionBatch, actions: TargetActions, run: Runner, keep: np.ndarray | None = None
) -> dict[str, Estimate]:
    """``fqe.dm``; with the policy's ratios in the batch ``fqe.dr`` and ``fqe.wdr`` too.

    Args:
        batch, actions: Of the sessions in ``keep``.
        keep: bool, the logged sessions to fit; all by default.
    """
    fitted = fit_fqe(
        _fqe_inputs(context, actions, keep), context.config.evaluation.fqe, seed=context.config.seed
    )
    valued = replace(batch, q=fitted.q, v=fitted.v, bootstrap=fitted.bootstrap)
    evidence = Evidence(fqe_converged=fitted.convergence.converged)
    members = fitted.v_start_members
    assert members is not None
    direct = run("fqe.dm", replace(valued, log_ratio=None), "dm", evidence=evidence)
    found = {"fqe.dm": with_members(direct, members.mean(1))}
    if batch.log_ratio is not None:
        found |= {f"fqe.{name}": run(f"fqe.{name}", valued, name, evidence=evidence) for name in CORRECTED}
    return found


def _asked_actions(context: Context, data: EmbeddedTurns, policy: Policy) -> TargetActions:
    """What the policy does in every state of these logs."""
    states, starts = logged_states(data, policy.reads), data.session_starts
    draw = {"count": context.config.evaluation.sampled_actions, "seed": context.config.seed}
    before = sampled_actions(context.model, policy, states.before, context.encoder, **draw)
    behind = sampled_actions(context.model, policy, states.after_last, context.encoder, **draw)
    following = np.concatenate([before[1:], before[:1]])
    following[starts[1:] - 1] = behind
    return TargetActions(before[starts[:-1]], following)


def _fqe_inputs(context: Context, actions: TargetActions, keep: np.ndarray | None) -> FQEInputs:
    """The logs and the target's actions as fitted Q evaluation takes them."""
    lengths = np.diff(context.data.session_starts)
    keep = np.ones(len(lengths), bool) if keep is None else keep
    rows, features = np.repeat(keep, lengths), context.features
    return FQEInputs(
        offsets=np.concatenate([[0], np.cumsum(lengths[keep])]),
        state_features=features.state[rows],
        action_features=features.action[rows],
        reward=context.turns.reward[rows],
        terminated=context.turns.terminated[rows],
        truncated=context.data.turns["truncated"].to_numpy(zero_copy_only=False)[rows],
        next_state_features=features.after[rows],
        next_action_features=actions.following,
        next_action_weights=actions.following_weights,
        start_action_features=actions.start,
        start_action_weights=actions.start_weights,
        gamma=context.gamma,
        horizon=context.model.horizon,
    )
