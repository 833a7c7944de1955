"""All estimates of one policy from its imagined sessions and the logs."""

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.stats import norm

from preplay.errors import PreplayError
from preplay.estimators import (
    Estimate,
    Evidence,
    Interval,
    SessionBatch,
)
from preplay.pipeline._context import Context
from preplay.pipeline._fqe import CORRECTED, ask_and_estimate
from preplay.pipeline._headline import ModelEvidence, choose_headline
from preplay.pipeline._imagined import Imagined, imagined_values
from preplay.pipeline._logged import log_ratios, logged_states, sampled_actions
from preplay.pipeline._model_value import fit_model_value
from preplay.pipeline._runs import Runner, at_most_bounds, runner, with_members
from preplay.pipeline._structure import Structured
from preplay.pipeline._weighted import WeightedSessions, weighted_sessions
from preplay.policies import Policy

WEIGHTED = ("is", "pdis", "wis", "wpdis")


@dataclass(frozen=True)
class PolicyEstimates:
    """What was found out about one policy.

    Args:
        headline: The number that leads.
        estimates: Every estimate by its short name: ``wpdis`` (logs alone), ``model.dm``, ``model.wdr``,
            ``model.blend`` (their mean), ``model.magic``, ``fqe.dm``, ``fqe.wdr``, ``structure``.
        weighted: The sessions with the policy's ratios, for diagnostics; ratios may be None.
        corrected: Its batch with the Q function behind the headline; None without propensities.
        value_fit: r² of that Q function on the imagined returns it was fitted to.
    """

    headline: Estimate
    estimates: dict[str, Estimate]
    weighted: WeightedSessions
    corrected: SessionBatch | None = None
    value_fit: float | None = None


@dataclass(frozen=True)
class _OnModel:
    """Estimates that rest on the world model; the other fields as in ``PolicyEstimates``."""

    estimates: dict[str, Estimate]
    corrected: SessionBatch | None = None
    value_fit: float | None = None


def estimate_policy(
    context: Context, policy: Policy, imagined: Imagined, structured: Structured | None = None
) -> PolicyEstimates:
    """Estimate the policy's value in every way that the logs allow."""
    weighted = weighted_sessions(context, log_ratios(context.data, policy))
    batch = weighted.batch
    run = runner(context, policy.name)
    wanted = context.request.estimators
    logged = run("mean", replace(batch, log_ratio=None), "mean")
    estimates = {"mean": at_most_bounds(logged, "This is the value of the logged policies, not of this one.")}
    if batch.log_ratio is not None:
        estimates |= {name: run(name, batch, name) for name in WEIGHTED}
    on_model = _model_estimates(context, policy, imagined, batch, run)
    estimates |= on_model.estimates
    # Fitting FQE takes half of the time; the headline needs it only where there are no propensities.
    if batch.log_ratio is None or wanted is None or any(name.startswith("fqe.") for name in wanted):
        estimates |= ask_and_estimate(context, policy, batch, run)
    evidence = ModelEvidence(
        bias=float(np.mean([abs(f.on_policy_value - f.logged_value) for f in context.fidelity])),
        beyond=imagined.share_beyond(context.support_radius),
        spread=float(context.batch.returns.std()),
    )
    structure = structured.estimate(policy.name, context) if structured else None
    if structure:
        estimates["structure"] = structure
    tested = structure if structured and structured.leads(policy.name) else None
    headline = choose_headline(estimates, evidence, context.config.evaluation.level, tested)
    shown = estimates if wanted is None else {name: estimates[name] for name in _known(wanted, estimates)}
    return PolicyEstimates(headline, shown, weighted, on_model.corrected, on_model.value_fit)


def _model_estimates(
    context: Context, policy: Policy, imagined: Imagined, batch: SessionBatch, run: Runner
) -> _OnModel:
    """The model's direct method, and the doubly robust estimates on its Q."""
    sessions = context.initial_sessions
    first = np.zeros(batch.n_turns)
    first[batch.offsets[sessions]] = imagined.result.initial_values
    evidence = Evidence(share_beyond=imagined.share_beyond(context.support_radius))
    direct = replace(batch, v=first, q=first, log_ratio=None).select(sessions)
    found = {
        "model.dm": with_members(
            run("model.dm", direct, "dm", evidence=evidence), imagined.result.member_values
        )
    }
    if batch.log_ratio is None:
        return _OnModel(found)
    tasks = context.data.task_id[batch.offsets[sessions]]
    rows = imagined_values(imagined, context.model, context.encoder, tasks)
    value = fit_model_value(rows, seed=context.config.seed)
    states = logged_states(context.data, policy.reads).before
    actions = sampled_actions(
        context.model,
        policy,
        states,
        context.encoder,
        count=context.config.evaluation.sampled_actions,
        seed=context.config.seed,
    )
    features = context.features
    corrected = replace(batch, q=value.q(features.state, features.action), v=value.v(features.state, actions))
    for name in (*CORRECTED, "magic"):
        found[f"model.{name}"] = run(f"model.{name}", corrected, name, evidence=evidence)
    found["model.blend"] = _blend(found["model.dm"], found["model.wdr"])
    return _OnModel(found, corrected, value.r2)


def _blend(direct: Estimate, corrected: Estimate) -> Estimate:
    """Mean of the model alone and the model corrected: halves the bias of one and the variance of the other.

    Sampling errors are added as if both were wrong in the same direction; half of their difference stands for bias.
    """
    if direct.raw_value is None or corrected.raw_value is None:
        return corrected.model_copy(update={"estimator": "model.blend/1"})
    value = (direct.raw_value + corrected.raw_value) / 2
    sampling = ((direct.standard_error or math.inf) + (corrected.standard_error or math.inf)) / 2
    error = math.hypot(sampling, (direct.raw_value - corrected.raw_value) / 2)
    level = corrected.interval.level
    half = float(norm.ppf((1 + level) / 2)) * error
    return corrected.model_copy(
        update={
            "estimator": "model.blend/1",
            "value": None if corrected.value is None else value,
            "raw_value": value,
            "standard_error": error,
            "interval": Interval(low=value - half, high=value + half, level=level, method="normal"),
        }
    )


def _known(wanted: tuple[str, ...], estimates: dict[str, Estimate]) -> list[str]:
    unknown = [name for name in wanted if name not in estimates]
    if unknown:
        raise PreplayError(
            f"no estimate {unknown[0]!r} on these logs.", fix=f"There are: {', '.join(sorted(estimates))}."
        )
    return list(wanted)
