"""One evaluation, in a Ray task: the same as ``preplay compare`` with the same seed."""

import io
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
import torch
from rich.console import Console
from scipy.stats import norm

from preplay.errors import PreplayError
from preplay.pipeline import EvaluationRequest, evaluate_policies, load_config, policy_key
from preplay.policies import ChatPolicy, Policy
from preplay.report import EvaluationReport, write_report
from preplay.rollout import FinishedBlock
from preplay_serve._config import ServerConfig
from preplay_serve.store import (
    ArtifactKind,
    EvaluationRecord,
    EvaluationSpec,
    PartialEstimate,
    Progress,
    Store,
    open_store,
)

_TELL_S = 0.5
Tell = Callable[[Progress, list[PartialEstimate]], None]


def execute(config: ServerConfig, record: EvaluationRecord, owner: str) -> str:
    """Run an evaluation to its report (JSON); imagined sessions of an earlier start are used again."""
    torch.set_num_threads(1)
    store = open_store(config.database_url)
    try:
        watch = Watch(
            lambda progress, partial: store.evaluations.advance(record.id, owner, progress, partial)
        )
        return evaluate(config, store, record, watch).model_dump_json()
    finally:
        store.close()


def evaluate(
    config: ServerConfig, store: Store, record: EvaluationRecord, watch: "Watch"
) -> EvaluationReport:
    """The report of an evaluation; paths of the server are not in it."""
    spec, folder = record.spec, config.evaluation_folder(record.id)
    names = {_resolve(policy, config, store, record): policy for policy in spec.policies}
    given = {spec: _endpoint(name, config) for spec, name in names.items() if spec.startswith("endpoint:")}
    request = EvaluationRequest(
        data=_path(store, "dataset", spec.dataset, record.versions.get("dataset")),
        models=_path(store, "world_models", spec.models, record.versions.get("world_models")),
        policies=tuple(names),
        output=folder,
        cache=config.cache_root,
        environment=spec.environment,
        estimators=spec.estimators,
        without=spec.without,
        truth_sessions=config.evaluations.truth_sessions,
    )
    watch.begin(names)
    report = evaluate_policies(
        request,
        load_config(preset=spec.preset, seed=spec.seed),
        console=Console(file=io.StringIO()),
        given=given,
        on_block=watch.block,
    )
    report = report.model_copy(update={"dataset": spec.dataset, "commands": [_command(spec)]})
    write_report(report, folder)
    return report


@dataclass
class Watch:
    """Turns finished blocks into progress and estimates so far, told every half second at most."""

    tell: Tell
    level: float = 0.95
    _names: dict[str, str] = field(default_factory=dict)
    _blocks: dict[str, list[tuple[np.ndarray, np.ndarray]]] = field(default_factory=dict)
    _told: float = 0.0

    def begin(self, names: Mapping[str, str]) -> None:
        """Policies by their resolved specification."""
        self._names = {
            policy_key(spec) if spec.startswith("cloned:") else spec: name for spec, name in names.items()
        }
        self.tell(Progress(stage="loading"), [])

    def block(self, block: FinishedBlock) -> None:
        """Note a block."""
        name = next((n for key, n in self._names.items() if block.policy.startswith(key)), None)
        if name is not None:
            self._blocks.setdefault(name, []).append((block.initial, block.returns))
        last = block.done == block.total
        if last or time.monotonic() - self._told > _TELL_S:
            self._told = time.monotonic()
            stage = "estimating" if last else "imagining sessions"
            self.tell(Progress(stage=stage, done=block.done, total=block.total), self.estimates())

    def estimates(self) -> list[PartialEstimate]:
        """What is known so far."""
        return [partial_estimate(name, blocks, self.level) for name, blocks in self._blocks.items()]


def partial_estimate(
    policy: str, blocks: list[tuple[np.ndarray, np.ndarray]], level: float
) -> PartialEstimate:
    """Mean over initial states of the mean imagined return from each, with a normal interval over these states."""
    initial, returns = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
    _, owner = np.unique(initial, return_inverse=True)
    means = np.bincount(owner, returns) / np.bincount(owner)
    error = means.std(ddof=1) / np.sqrt(len(means)) if len(means) > 1 else 0.0
    half = float(norm.ppf((1 + level) / 2) * error)
    value = float(means.mean())
    return PartialEstimate(
        policy=policy, value=value, low=value - half, high=value + half, level=level, sessions=len(returns)
    )


def _resolve(policy: str, config: ServerConfig, store: Store, record: EvaluationRecord) -> str:
    """A policy of a request as ``preplay.policies.load_policy`` reads it."""
    form, _, name = policy.partition(":")
    match form:
        case "env":
            return policy
        case "python" if name in config.evaluations.python:
            return f"python:{config.evaluations.python[name]}"
        case "endpoint" if name in config.evaluations.endpoints:
            return policy
        case "cloned":
            return f"cloned:{_path(store, 'clone', name, record.versions.get(policy))}"
        case _:
            raise PreplayError(f"policy {policy!r} is not registered any more.")


def _endpoint(policy: str, config: ServerConfig) -> Policy:
    name = policy.partition(":")[2]
    config.check_endpoints()
    return ChatPolicy(name, config.evaluations.endpoints[name], str(config.cache_root / "answers"))


def _path(store: Store, kind: ArtifactKind, name: str, version: str | None) -> str:
    """Where the version lies that the evaluation was accepted with.

    Raises:
        PreplayError: When something else lies there now, which only happens where no snapshot could be made.
    """
    found = store.artifacts.get(kind, name, version)
    current = store.artifacts.get(kind, name)
    if found is None or (current and current.version != found.version and current.path == found.path):
        raise PreplayError(
            f"{kind} {name!r} is not what it was when the evaluation was accepted.", fix="Ask again."
        )
    return found.path


def _command(spec: EvaluationSpec) -> str:
    parts = ["preplay", "compare", *spec.policies, "--data", spec.dataset, "--models", spec.models]
    parts += ["--environment", spec.environment] if spec.environment else []
    parts += ["--estimators", ",".join(spec.estimators)] if spec.estimators else []
    parts += [word for name in spec.without for word in ("--without", name)]
    return " ".join([*parts, "--preset", spec.preset, "--seed", str(spec.seed)])
