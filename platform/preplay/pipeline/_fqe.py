"""Fitted Q evaluation on phi, alone and corrected, from what the target policy would do in the logged states.

S sessions, R turns, K actions per state, DA action features.
"""

from dataclasses import dataclass, replace

import numpy as np

from preplay.estimators import Estimate, Evidence, FQEInputs, SessionBatch, fit_fqe
from preplay.pipeline._context import Context
from preplay.pipeline._logged import logged_states, sampled_actions
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


def asked_actions(context: Context, policy: Policy) -> TargetActions:
    """Ask the policy in every logged state."""
    states, starts = logged_states(context.data, policy.reads), context.data.session_starts
    draw = {"count": context.config.evaluation.sampled_actions, "seed": context.config.seed}
    before = sampled_actions(context.model, policy, states.before, context.encoder, **draw)
    behind = sampled_actions(context.model, policy, states.after_last, context.encoder, **draw)
    following = np.concatenate([before[1:], before[:1]])
    following[starts[1:] - 1] = behind
    return TargetActions(before[starts[:-1]], following)


def fqe_inputs(context: Context, actions: TargetActions) -> FQEInputs:
    """The logs and the target's actions as fitted Q evaluation takes them."""
    features = context.features
    return FQEInputs(
        offsets=context.data.session_starts,
        state_features=features.state,
        action_features=features.action,
        reward=context.turns.reward,
        terminated=context.turns.terminated,
        truncated=context.data.turns["truncated"].to_numpy(zero_copy_only=False),
        next_state_features=features.after,
        next_action_features=actions.following,
        next_action_weights=actions.following_weights,
        start_action_features=actions.start,
        start_action_weights=actions.start_weights,
        gamma=context.gamma,
        horizon=context.model.horizon,
    )


def fqe_estimates(
    context: Context, batch: SessionBatch, actions: TargetActions, run: Runner
) -> dict[str, Estimate]:
    """``fqe.dm``; with the policy's ratios in the batch ``fqe.dr`` and ``fqe.wdr`` too."""
    fitted = fit_fqe(fqe_inputs(context, actions), context.config.evaluation.fqe, seed=context.config.seed)
    valued = replace(batch, q=fitted.q, v=fitted.v, bootstrap=fitted.bootstrap)
    evidence = Evidence(fqe_converged=fitted.convergence.converged)
    members = fitted.v_start_members
    assert members is not None
    direct = run("fqe.dm", replace(valued, log_ratio=None), "dm", evidence=evidence)
    found = {"fqe.dm": with_members(direct, members.mean(1))}
    if batch.log_ratio is not None:
        found |= {f"fqe.{name}": run(f"fqe.{name}", valued, name, evidence=evidence) for name in CORRECTED}
    return found
