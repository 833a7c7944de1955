"""What the report shows beside the numbers: drift, support, model quality, logged policies, sessions to read."""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import torch

from preplay.estimators import (
    SessionBatch,
    TermsEstimator,
    ess_per_step,
    evaluate_estimator,
    get_estimator,
)
from preplay.pipeline._context import Context
from preplay.pipeline._imagined import Imagined
from preplay.report import (
    BehaviorPolicy,
    CalibrationBin,
    DriftCurve,
    ModelQuality,
    SessionPair,
    Support,
    Turn,
)
from preplay.rollout import RolloutResult
from preplay.world_model import Fidelity

MAX_TEXT = 2000
SHOWN_SURVIVAL = 0.05


def drift_of(imagined: Imagined) -> DriftCurve:
    """Distances of imagined turns from the logs."""
    drift = imagined.result.drift
    return DriftCurve(snap_distance=drift.snap.tolist(), support_distance=drift.support.tolist())


def logged_drift(context: Context) -> DriftCurve:
    """Support distance of held-out logged turns: what a policy inside the logs looks like."""
    held_out = context.turns.held_out
    turn, distance = context.turns.turn[held_out], context.support_distance[held_out]
    counts = np.bincount(turn)
    return DriftCurve(
        support_distance=(np.bincount(turn, distance)[counts > 0] / counts[counts > 0]).tolist()
    )


def support_of(context: Context, imagined: Imagined, batch: SessionBatch) -> Support:
    """How well the logs cover what the policy does."""
    weighted = get_estimator("wpdis")
    assert isinstance(weighted, TermsEstimator)
    ess = [] if batch.log_ratio is None else [*ess_per_step(weighted, batch).y]
    radius = context.support_radius
    return Support(share_beyond=imagined.share_beyond(radius), radius=radius, ess_per_step=ess)


def model_quality(fidelity: list[Fidelity]) -> ModelQuality:
    """Fidelity of the first member, and the others' main figures."""
    first = fidelity[0]
    bins = [
        CalibrationBin(predicted=b.predicted, observed=b.observed, count=b.turns)
        for b in first.termination_bins
    ]
    other = {
        "energy score when the condition is ignored": first.energy_score_marginal,
        "standard deviation of the reward": first.reward_std,
        "termination ECE": first.termination_ece,
        "on-policy value": [f.on_policy_value for f in fidelity],
        "logged value of the held-out sessions": [f.logged_value for f in fidelity],
    }
    return ModelQuality(
        energy_score=first.energy_score,
        cosine=first.cosine,
        variance_ratio=first.variance_ratio,
        condition_effect=first.condition_effect,
        reward_rmse=first.reward_rmse,
        termination=bins,
        k_step_drift=[*first.drift],
        other=other,
    )


def logged_policies(context: Context, on_policy: Mapping[str, RolloutResult]) -> list[BehaviorPolicy]:
    """Each logged policy with its mean return and, where it could be imagined, what the model says of it."""
    names = context.data.session_policy
    return [
        _behavior(context, name, np.flatnonzero(names == name), on_policy.get(name))
        for name in np.unique(names)
    ]


def _behavior(
    context: Context, name: str, sessions: np.ndarray, imagined: RolloutResult | None
) -> BehaviorPolicy:
    batch = context.batch.select(sessions)
    mean = evaluate_estimator(get_estimator("mean"), batch, policy=name, seed=context.config.seed)
    values = None if imagined is None else imagined.initial_values
    return BehaviorPolicy(
        name=name,
        sessions=len(sessions),
        mean_return=float(batch.returns.mean()),
        interval=mean.interval,
        predicted=None if values is None else float(values.mean()),
        predicted_error=None if values is None else float(values.std(ddof=1) / np.sqrt(len(values))),
    )


def session_pairs(context: Context, imagined: Imagined) -> list[SessionPair]:
    """A few imagined sessions from bad to good, each beside the logged one that resembles it most."""
    count = context.config.evaluation.shown_sessions
    if not count:
        return []
    returns = imagined.value[imagined.first]
    order = np.argsort(returns, kind="stable")
    chosen = order[np.linspace(0, len(order) - 1, count + 2).round().astype(int)[1:-1]]
    real = _mean_support_keys(context)
    return [_pair(context, imagined, int(session), real) for session in dict.fromkeys(chosen.tolist())]


def _pair(context: Context, imagined: Imagined, session: int, real: np.ndarray) -> SessionPair:
    table = imagined.table.slice(*_extent(imagined, session))
    alive = table["survival"].to_numpy() >= SHOWN_SURVIVAL
    shown = table.slice(0, int(alive.sum()))
    model, encoder = context.model, context.encoder
    observation, action = (
        torch.as_tensor(encoder.encode(shown[name].to_pylist()), device=model.device)
        for name in ("observation", "action")
    )
    with torch.no_grad():
        key = torch.cat(
            [model.features.observation_phi(observation), model.features.action_phi(action)], -1
        ).mean(0)
    nearest = int(np.square(real - key.cpu().numpy()).sum(-1).argmin())
    starts = context.data.session_starts
    logged = context.data.turns.slice(int(starts[nearest]), int(starts[nearest + 1] - starts[nearest]))
    return SessionPair(
        imagined=_turns(shown, imagined=True),
        imagined_return=float(imagined.value[imagined.first[session]]),
        real=_turns(logged, imagined=False),
        real_return=float(context.batch.returns[nearest]),
        real_session_id=logged["session_id"][0].as_py(),
        real_policy=logged["policy"][0].as_py(),
    )


def _extent(imagined: Imagined, session: int) -> tuple[int, int]:
    ends = np.append(imagined.first[1:], len(imagined.session))
    return int(imagined.first[session]), int(ends[session] - imagined.first[session])


def _mean_support_keys(context: Context) -> np.ndarray:
    """Mean phi of each logged session's observations and actions, float64 [S, 2P]."""
    model, data = context.model, context.data
    bank = torch.tensor(data.bank.embeddings, device=model.device)
    with torch.no_grad():
        seen = model.features.observation_phi(bank)[torch.as_tensor(data.observation_id)]
        done = model.features.action_phi(bank)[torch.as_tensor(data.action_id)]
    keys = torch.cat([seen, done], -1).double().cpu().numpy()
    starts = data.session_starts
    return np.add.reduceat(keys, starts[:-1], 0) / np.diff(starts)[:, None]


def _turns(table: pa.Table, *, imagined: bool) -> list[Turn]:
    of_the_model = ["terminated_prob", "snap_distance", "support_distance"] * imagined
    rows = table.select(["observation", "action", "reward", *of_the_model]).to_pylist()
    return [Turn(**row | {name: _shortened(row[name]) for name in ("observation", "action")}) for row in rows]


def _shortened(text: str) -> str:
    return (
        text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]} … ({len(text) - MAX_TEXT:,} characters more)"
    )
