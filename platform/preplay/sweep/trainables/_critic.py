"""Sweeps of critics: judged out of fold, by how they rank on tasks that they have not seen."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import ray

from preplay.artifacts import is_complete, open_artifact
from preplay.control import encoder_for
from preplay.critics import (
    ActionEncoder,
    Critic,
    CriticConfig,
    Decisions,
    action_correlation,
    auc,
    calibration_error,
    decisions_from_turns,
    evaluate_critic,
    join_critics,
    returns_to_go,
    save_critic,
    split_groups,
    train_critic,
)
from preplay.embedding import EncoderFingerprint
from preplay.environments.code_repair import (
    Grader,
    generator,
    log_sessions,
    noisy_expert,
    random_candidate,
    split_tasks,
)
from preplay.logs import load_turns, write_dataset
from preplay.seeding import numpy_rng
from preplay.sweep._config import DataConfig
from preplay.sweep._members import Product
from preplay.sweep._trainable import Job, Outcome, Prepared

HELD_OUT = 0.25
"""Share of the tasks that no trial sees, as in `preplay critic train`; the product is measured on them once."""

SESSIONS_PER_TASK = 10
"""Of simulated data: ranking within a task needs right and wrong actions in it."""


@dataclass(frozen=True)
class Shared:
    """Decisions for the trials and their folds (int64 [N], whole tasks), decisions held out from all, the encoder.

    ``fingerprint`` is that of the sentence encoder, which reads logs of plain text; ``told`` the metrics these
    decisions can tell.
    """

    decisions: Decisions
    fold: np.ndarray
    held_out: Decisions
    encoder: dict[str, Any]
    feature_names: tuple[str, ...]
    fingerprint: EncoderFingerprint | None
    told: frozenset[str]


class CriticTrainable:
    """Critics; the configuration is :class:`preplay.critics.CriticConfig`.

    Metrics, all out of fold (each task is scored by a critic that has not seen it): ``auc_within_task`` (a right
    action scores above a wrong one of the same task), ``auc`` (over all tasks), ``replay_uplift`` (success where the
    critic's choice is what was executed, minus success overall; unbiased where the executed one was drawn at random),
    ``calibration`` (expected error of the scores as probabilities of success), ``action_correlation``
    (with the undiscounted return that followed, see :func:`preplay.critics.action_correlation`).
    """

    name: str
    algorithm: Literal["iql", "cql"]
    config = CriticConfig
    fixed = ("algorithm", "members", "weights")
    needs_data = True
    place = ""
    continues = False
    metrics: ClassVar[dict[str, Literal["min", "max"]]] = {
        "auc_within_task": "max",
        "auc": "max",
        "replay_uplift": "max",
        "calibration": "min",
        "action_correlation": "max",
    }

    def prepare(self, data: DataConfig, folder: Path, seed: int, cache: Path) -> Prepared:
        """See :class:`preplay.sweep.Trainable`."""
        uri = data.path or str(folder / "dataset")
        if data.generate:
            _simulate(folder / "dataset", data)
        turns = load_turns(uri)
        encoder = encoder_for(turns, data.encoder, cache)
        everything = decisions_from_turns(turns, encoder)
        train, held = split_groups(everything, HELD_OUT, numpy_rng(seed, "held-out tasks"))
        fold = task_folds(train.group, data.folds, seed)
        told = frozenset(self.metrics if len(np.unique(train.success)) > 1 else {"action_correlation"})
        shared = Shared(
            train, fold, held, encoder.settings(), encoder.feature_names, encoder.fingerprint, told
        )
        return Prepared(shared, {"dataset": open_artifact(uri, "dataset").manifest.content_hash}, told)

    def run(self, job: Job) -> Iterator[Outcome]:
        """See :class:`preplay.sweep.Trainable`."""
        for share in job.shares:
            steps = max(1, round(job.config.steps * share))
            settings = {"algorithm": self.algorithm, "steps": steps, "members": 1}
            yield self._cross_fitted(job.shared, job.config.model_copy(update=settings), job.seed)

    def ensemble_loss(self, shared: Shared, prediction: np.ndarray) -> float:
        """One minus the ranking within tasks of out-of-fold scores; where nothing is right or wrong, by return."""
        within = within_task_auc(prediction, shared.decisions)
        if np.isfinite(within):
            return 1 - within
        return 1 - action_correlation(prediction, returns_to_go(shared.decisions, 1.0), shared.decisions)

    def publish(self, product: Product, target: Path | str) -> dict[str, Any]:
        """One critic artifact whose members have their own configurations; `control` loads it like any other."""
        task = ray.remote(num_cpus=product.cpus, num_gpus=product.gpus, max_retries=3)(_train_member)
        jobs = [task.remote(product.shared, m.config, self.algorithm, m.seed) for m in product.members]
        critic = join_critics(ray.get(jobs))
        shared: Shared = ray.get(product.shared)
        figures = asdict(evaluate_critic(critic, shared.held_out)) | {"split_seed": product.seed}
        metrics = (
            figures | product.metrics | {"sweep": product.config | {"members": product.manifest_members()}}
        )
        encoder = ActionEncoder.from_settings(shared.encoder, fingerprint=shared.fingerprint)
        save_critic(critic, target, encoder=encoder, inputs=product.inputs, metrics=metrics)
        return metrics

    def _cross_fitted(self, shared: Shared, config: CriticConfig, seed: int) -> Outcome:
        data = shared.decisions
        scores, best = np.zeros(len(data)), np.zeros(len(data), bool)
        calibration = []
        for number in np.unique(shared.fold):
            inside = shared.fold == number
            critic = train_critic(config, data.select(~inside), seed=seed)
            part = data.select(inside)
            values = critic.score(part.pools).mean
            scores[inside], best[inside] = values[part.chosen], _is_best(values, part)
            calibration.append(calibration_error(scores[inside], part))
        metrics = {"action_correlation": action_correlation(scores, returns_to_go(data, 1.0), data)}
        if "auc" in shared.told:
            metrics |= {
                "auc_within_task": within_task_auc(scores, data),
                "auc": auc(scores, data.success),
                "replay_uplift": float(data.success[best].mean() - data.success.mean())
                if best.any()
                else 0.0,
                "calibration": float(np.nanmean(calibration)),
            }
        return Outcome(metrics, scores)


class IqlTrainable(CriticTrainable):
    """Critics by implicit Q-learning."""

    name = "critic_iql"
    algorithm = "iql"


class CqlTrainable(CriticTrainable):
    """Critics by conservative Q-learning."""

    name = "critic_cql"
    algorithm = "cql"


def within_task_auc(scores: np.ndarray, data: Decisions) -> float:
    """Ranking of right above wrong actions within tasks, the mean over tasks that have both."""
    names = data.group.astype(str)
    each = np.array([auc(scores[names == name], data.success[names == name]) for name in np.unique(names)])
    known = each[np.isfinite(each)]
    return float(known.mean()) if len(known) else float("nan")


def task_folds(group: np.ndarray, folds: int, seed: int) -> np.ndarray:
    """Fold of each decision, int64 [N]; a task is never cut."""
    names, position = np.unique(group.astype(str), return_inverse=True)
    order = numpy_rng(seed, "folds").permutation(len(names))
    return (order % folds)[position]


def _is_best(scores: np.ndarray, data: Decisions) -> np.ndarray:
    """Whether what was executed is what the critic would have chosen, bool [N]."""
    offsets = data.pools.offsets
    tops = np.maximum.reduceat(scores, offsets[:-1])
    return scores[data.chosen] >= tops


def _train_member(shared: Shared, config: CriticConfig, algorithm: str, seed: int) -> Critic:
    """One member on all decisions that are not held out; runs in a Ray worker."""
    settings = config.model_copy(update={"algorithm": algorithm, "members": 1})
    return train_critic(
        settings,
        shared.decisions,
        seed=seed,
        feature_names=shared.feature_names,
        fingerprint=shared.fingerprint,
    )


def _simulate(path: Path, data: DataConfig) -> None:
    """Sessions of a blind and of a half-blind agent on code-repair tasks, unless they stand there."""
    config = {"environment": data.generate, "sessions": data.sessions, "seed": data.seed}
    if is_complete(path, "dataset", config=config, inputs={}):
        return
    grader = Grader()
    tasks, _ = split_tasks(data.seed)
    turns = log_sessions(
        tasks[: max(8, data.sessions // SESSIONS_PER_TASK)],
        [generator("middling")],
        {"random": random_candidate, "expert": noisy_expert(grader)},
        grader,
        sessions=data.sessions // 2,
        seed=data.seed,
    )
    write_dataset(turns, str(path), config=config, seed=data.seed)
