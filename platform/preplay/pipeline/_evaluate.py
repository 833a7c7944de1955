"""From embedded logs and world models to the report on any number of target policies."""

import datetime as dt
import hashlib
import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import numpy as np
import ray
import torch
from ray.cloudpickle import register_pickle_by_value
from rich.console import Console

from preplay.actions import SessionReader
from preplay.artifacts import open_artifact, read_manifest
from preplay.environments import truth
from preplay.errors import PreplayError
from preplay.estimators import Resampled, spearman
from preplay.logs import load_card
from preplay.pipeline._config import PreplayConfig
from preplay.pipeline._context import Context, EvaluationRequest, load_context
from preplay.pipeline._curves import (
    differences,
    logged_returns,
    propensity_check,
    resampled_headline,
    returns_of,
    weights_of,
)
from preplay.pipeline._describe import (
    drift_of,
    logged_drift,
    logged_policies,
    model_quality,
    session_pairs,
    support_of,
)
from preplay.pipeline._estimate import estimate_policy
from preplay.pipeline._imagined import Imagined
from preplay.pipeline._structure import METHOD, Structured, judge_structure
from preplay.policies import AgentState, Policy, load_policy
from preplay.report import Difference, EvaluationReport, PolicyResult, Ranking, Truth
from preplay.rollout import FinishedBlock, RolloutResult, ToolCalls, run_rollouts
from preplay.seeding import numpy_rng
from preplay.world_model import load_world_model

_VERSIONS = ("preplay", "ray", "torch", "diffusers", "sentence-transformers", "numpy")


@dataclass(frozen=True)
class _Judged:
    """A policy's result, and its resamples where its headline is identified."""

    result: PolicyResult
    resampled: Resampled | None


def evaluate_policies(
    request: EvaluationRequest,
    config: PreplayConfig,
    *,
    console: Console,
    given: Mapping[str, Policy] | None = None,
    on_block: Callable[[FinishedBlock], None] | None = None,
) -> EvaluationReport:
    """Judge every policy of the request; imagined sessions that a killed run finished are used again.

    Ray must be running.

    Args:
        given: Policies of the request that are there already, by their specification.
        on_block: Called for every finished block of imagined sessions, with the policy's :func:`policy_key`.
    """
    with console.status("Loading logs and world models"):
        context = load_context(request, config)
        policies = _load_policies(context, given or {})
    logged = _logged_policies(context)
    rollouts = _imagine(context, policies | logged, on_block)
    structured = judge_structure(context, policies, console)
    results = _estimate_all(context, policies, rollouts, structured, console)
    on_policy = {policy.name: rollouts[spec] for spec, policy in logged.items()}
    with console.status("Comparing policies"):
        report = _report(context, results, on_policy, structured)
    return report.model_copy(update={"backtests": list(structured.tested.values())}) if structured else report


def _estimate_all(
    context: Context,
    policies: Mapping[str, Policy],
    rollouts: Mapping[str, RolloutResult],
    structured: Structured | None,
    console: Console,
) -> list[_Judged]:
    """One Ray task per policy; the logs and models are put into the object store once."""
    shared = ray.put(context)
    task = ray.remote(num_cpus=1)(_result)
    pending = [
        task.remote(shared, spec, policy, rollouts[spec], structured) for spec, policy in policies.items()
    ]
    waiting = pending
    with console.status("Estimating") as status:
        while waiting:
            done = len(pending) - len(waiting)
            status.update(f"Estimating values: {done} of {len(pending)} policies done")
            _, waiting = ray.wait(waiting, num_returns=1)
    return ray.get(pending)


def _load_policies(context: Context, given: Mapping[str, Policy]) -> dict[str, Policy]:
    specs = dict.fromkeys(context.request.policies)
    answers = str(context.request.cache / "answers")
    policies = {
        spec: given.get(spec) or load_policy(spec, context.environment, context.encoder, answers)
        for spec in specs
    }
    names = [policy.name for policy in policies.values()]
    for spec in specs:
        if spec.startswith("python:"):  # workers elsewhere cannot import what lies in the user's folder
            register_pickle_by_value(sys.modules[spec.split(":")[1]])
    if twice := [name for name in names if names.count(name) > 1]:
        raise PreplayError(f"two policies are called {twice[0]!r}.", fix="Give each policy its own name.")
    for policy in policies.values():
        _ask_once(policy, context)
    return policies


def _ask_once(policy: Policy, context: Context) -> None:
    """A policy that cannot answer says so here, in its own words, and not from workers minutes later."""
    first = context.data.turns.slice(0, 1).to_pylist()[0]
    state = AgentState(first["observation"], first["task"])
    policy.act([state], numpy_rng(context.config.seed, "first answer"))


def _logged_policies(context: Context) -> dict[str, Policy]:
    """The policies that wrote the logs, where the environment knows them: for the on-policy check."""
    if context.environment is None:
        return {}
    known = context.environment.policies()
    return {f"env:{name}": known[name] for name in np.unique(context.data.session_policy) if name in known}


def _imagine(
    context: Context, policies: Mapping[str, Policy], on_block: Callable[[FinishedBlock], None] | None
) -> dict[str, RolloutResult]:
    config = context.config
    keyed = {policy_key(spec): policy for spec, policy in policies.items()}
    results = run_rollouts(
        [str(path) for path in context.members],
        keyed,
        context.initial_states,
        config.rollout.model_copy(update={"gamma": context.gamma, "seed": config.seed}),
        context.request.output / "rollouts",
        load_model=load_world_model,
        encoder=context.encoder,
        calls=_tool_calls(context),
        on_block=on_block,
    )
    return {spec: results[policy_key(spec)] for spec in policies}


def _tool_calls(context: Context) -> ToolCalls | None:
    """What imagined tool calls are read by, where the world models condition on them."""
    if context.model.columns is None:
        return None
    rows = context.data.session_starts[context.initial_sessions]
    logs = open_artifact(context.request.data, "embedded").manifest.content_hash
    key = " ".join([logs, *sorted(context.request.without)])
    return ToolCalls(SessionReader(context.data.turns, context.model.columns), rows, key)


def policy_key(spec: str) -> str:
    """What stands for a policy on disk: its specification and the content behind it."""
    form, _, rest = spec.partition(":")
    if form == "chat":
        return f"{spec}@{hashlib.sha256(Path(rest).read_bytes()).hexdigest()}"
    if form == "cloned":
        return f"{spec}@{read_manifest(rest).content_hash}"
    if form == "python":
        module = sys.modules[rest.partition(":")[0]]
        return f"{spec}@{hashlib.sha256(inspect.getsource(module).encode()).hexdigest()}"
    return f"{spec}@{version('preplay')}"


def _result(
    context: Context, spec: str, policy: Policy, rollouts: RolloutResult, structured: Structured | None
) -> _Judged:
    """Everything about one policy; runs in a Ray worker."""
    torch.set_num_threads(1)
    imagined = Imagined.of(rollouts, context.gamma)
    found = estimate_policy(context, policy, imagined, structured)
    evaluation, seed = context.config.evaluation, context.config.seed
    result = PolicyResult(
        name=policy.name,
        headline=found.headline,
        estimates=list(found.estimates.values()),
        truth=_truth(context, spec, policy),
        drift=drift_of(imagined),
        support=support_of(context, imagined, found.weighted.batch),
        weights=weights_of(found.weighted, found.corrected),
        returns=returns_of(found.weighted.batch, level=evaluation.level, seed=seed),
        value_fit=found.value_fit,
        sessions=session_pairs(context, imagined),
        structured=structured.found[policy.name] if structured else None,
    )
    comparable = found.headline.verdict != "not identified"
    return _Judged(result, resampled_headline(context, found.corrected) if comparable else None)


def _truth(context: Context, spec: str, policy: Policy) -> Truth | None:
    """The true value, only to be printed: no estimate sees it."""
    if context.environment is None or not spec.startswith("env:"):
        return None
    played = truth(
        policy,
        context.environment,
        sessions=context.request.truth_sessions,
        seed=context.config.seed,
        gamma=context.gamma,
    )
    return Truth(value=played.value, standard_error=played.standard_error)


def _report(
    context: Context,
    judged: list[_Judged],
    on_policy: Mapping[str, RolloutResult],
    structured: Structured | None,
) -> EvaluationReport:
    request, reward = context.request, context.turns.reward
    results = [one.result for one in judged]
    dataset = open_artifact(request.data, "embedded")
    return EvaluationReport(
        title="How good are these policies?",
        dataset=request.data,
        created=dt.datetime.now(dt.UTC),
        seed=context.config.seed,
        gamma=context.gamma,
        horizon=context.model.horizon,
        reward_range=(float(reward.min()), float(reward.max())),
        policies=results,
        behavior=logged_policies(context, on_policy),
        differences=_differences(context, judged, structured),
        logged_returns=logged_returns(context.batch),
        propensities=propensity_check(context),
        logged_drift=logged_drift(context),
        model=model_quality(context.fidelity),
        ranking=rankings(results),
        data_card=_data_card(dataset.path.parent / "dataset", dataset.manifest.inputs),
        configuration=context.config.model_dump(mode="json"),
        versions={name: version(name) for name in _VERSIONS},
        commands=[" ".join(["preplay", *sys.argv[1:]])],
    )


def _differences(context: Context, judged: list[_Judged], structured: Structured | None) -> list[Difference]:
    """By resampled sessions where there are propensities, else by the errors that the backtests taught."""
    settings = context.config.evaluation
    comparable = {one.result.name: one.resampled for one in judged if one.resampled}
    if comparable or structured is None:
        return differences(comparable, settings.level)
    headlines = [one.result.headline for one in judged if one.result.headline.verdict == "estimate"]
    draws = structured.resampled(headlines, settings.resamples, context.config.seed)
    return differences(draws, settings.level, METHOD)


def _data_card(path, inputs: Mapping[str, str]) -> dict:
    """The data card of the dataset that was embedded, where it lies beside it."""
    if not (path / "manifest.json").exists() or read_manifest(path).content_hash != inputs["dataset"]:
        return {}
    return load_card(path).model_dump(mode="json")


def rankings(results: list[PolicyResult]) -> list[Ranking]:
    """How well each estimator orders the policies, where every truth is known."""
    if len(results) < 2 or any(result.truth is None for result in results):
        return []
    true = [result.truth.value for result in results if result.truth]
    width = max(true) - min(true)
    rows = []
    by_estimator = {e.estimator: [] for e in results[0].estimates}
    for result in results:
        for estimate in result.estimates:
            by_estimator[estimate.estimator].append(estimate.raw_value)
    headline = [result.headline.raw_value for result in results]
    for name, values in {"headline": headline, **by_estimator}.items():
        if len(values) != len(true) or any(v is None for v in values) or width == 0:
            continue
        error = sum(abs(v - t) for v, t in zip(values, true, strict=True)) / len(true)
        best = max(range(len(values)), key=lambda i: values[i])
        rows.append(
            Ranking(
                estimator=name,
                policies=len(true),
                spearman=spearman(np.array(values), np.array(true)),
                mae_share=error / width,
                regret_at_1=(max(true) - true[best]) / width,
            )
        )
    return rows
