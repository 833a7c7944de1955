"""Sweeps of world models: judged by what they generate for held-out sessions."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from torch import nn

from preplay.actions import SessionReader
from preplay.artifacts import write_artifact
from preplay.embedding import EmbeddedTurns
from preplay.sweep._config import DataConfig
from preplay.sweep._members import Product, train_members
from preplay.sweep._trainable import Job, Outcome, Prepared
from preplay.sweep.trainables._desk_data import embedded_data
from preplay.sweep.trainables._open_loop import rollout_error
from preplay.world_model import (
    FEATURES_CHECKPOINT,
    Fidelity,
    TrainedModel,
    WorldModelConfig,
    measure_energy_score,
    measure_fidelity,
    save_world_model,
    stored_config,
    tool_call_reader,
    train_in_stages,
    train_world_model,
)


@dataclass(frozen=True)
class WorldLogs:
    """Embedded logs, and what reads their tool calls where a fifth of the actions or more are such."""

    data: EmbeddedTurns
    reader: SessionReader | None = None


class WorldModelTrainable:
    """World models; the configuration is :class:`preplay.world_model.WorldModelConfig`.

    Metrics: ``energy_score`` (of the generated next observation, a proper score; of those tried the one that orders
    configurations as their true errors do), ``rollout_error`` (root mean square error of rewards and terminations
    imagined along the logged actions of held-out sessions, 1 is always predicting the mean), ``on_policy_error``
    (imagined minus logged value of the logging policies on held-out sessions, in standard deviations of the returns),
    ``calibration`` (of the termination probability), ``drift`` (see :class:`preplay.world_model.Fidelity`), ``cost``
    (millions of multiplications per imagined turn).
    """

    name = "world_model"
    config = WorldModelConfig
    fixed = ("validation_fraction", "split_by")
    needs_data = True
    place = "world_model"
    continues = True
    metrics: ClassVar[dict[str, Literal["min", "max"]]] = dict.fromkeys(
        ("energy_score", "rollout_error", "on_policy_error", "calibration", "drift", "cost"), "min"
    )

    def prepare(self, data: DataConfig, folder: Path, seed: int, cache: Path) -> Prepared:
        """See :class:`preplay.sweep.Trainable`."""
        embedded, _, inputs = embedded_data(data, folder, cache)
        return Prepared(WorldLogs(embedded, tool_call_reader(embedded)), inputs)

    def run(self, job: Job) -> Iterator[Outcome]:
        """See :class:`preplay.sweep.Trainable`."""
        logs: WorldLogs = job.shared
        reader = logs.reader if job.config.structure else None
        phi, deciding = job.folder / FEATURES_CHECKPOINT, _deciding_phi(job.config)
        known = phi.exists() or job.common.fetch(deciding, phi)
        stages = train_in_stages(
            logs.data,
            job.config,
            seed=job.seed,
            shares=job.shares,
            reader=reader,
            checkpoints=job.folder,
        )
        for share, trained in zip(job.shares, stages, strict=True):
            if not known:
                job.common.keep(deciding, phi)
                known = True
            early = share < job.shares[-1] and job.wanted == {"energy_score"}
            yield (_glance if early else judge)(trained, logs.data, job.seed, reader)

    def ensemble_loss(self, shared: WorldLogs, prediction: np.ndarray) -> None:
        """Each model samples in a latent space of its own, and a mean of samples is no sample."""

    def publish(self, product: Product, target: Path | str) -> dict[str, Any]:
        """An ensemble artifact whose folders ``member-0`` ... are world models as `preplay train` writes them."""
        return train_members(product, target, _train_member)


def _deciding_phi(config: WorldModelConfig) -> dict[str, Any]:
    """What decides phi, which is trained to the end before anything else: many trials share it."""
    return config.model_dump(
        mode="json", include={"features", "gamma", "horizon", "validation_fraction", "split_by", "device"}
    )


def judge(
    trained: TrainedModel, data: EmbeddedTurns, seed: int, reader: SessionReader | None = None
) -> Outcome:
    """All figures of a model on the held-out sessions of its own split; ``reader`` is that it was trained with."""
    model, bank = trained.model, data.bank.embeddings
    fidelity = measure_fidelity(model, bank, trained.turns, seed=seed, reader=reader)
    first = (trained.turns.turn == 0) & trained.turns.held_out
    spread = max(float(trained.turns.return_to_go[first].std()), 1e-6)
    metrics = {
        "rollout_error": rollout_error(model, bank, trained.turns, seed=seed, reader=reader),
        "on_policy_error": abs(fidelity.on_policy_value - fidelity.logged_value) / spread,
        "calibration": fidelity.termination_ece,
        "energy_score": fidelity.energy_score,
        "drift": float(np.mean(fidelity.drift)) if fidelity.drift else 0.0,
        "cost": multiplications(trained.model.dynamics, trained.model.config) / 1e6,
    }
    return Outcome(metrics, np.zeros(0))


def _glance(trained: TrainedModel, data: EmbeddedTurns, seed: int, reader: SessionReader | None) -> Outcome:
    """The energy score alone: a fifth of what all figures take, and as much as an early stage's training."""
    score = measure_energy_score(trained.model, data.bank.embeddings, trained.turns, seed=seed, reader=reader)
    return Outcome({"energy_score": score}, np.zeros(0))


def multiplications(dynamics: nn.Module, config: WorldModelConfig) -> float:
    """Multiplications of the dynamics per imagined turn: its matrices, times how often the sampler asks them."""
    times = {"diffusion": config.sampler_steps, "flow": 2 * config.sampler_steps}.get(config.dynamics, 1)
    weights = sum(p.numel() for p in dynamics.parameters() if p.dim() == 2)
    stored = sum(b.numel() for b in dynamics.buffers() if b.dim() == 2)
    return float(times * weights + (stored if config.dynamics in ("knn", "categorical") else 0))


def _train_member(
    logs: WorldLogs, config: WorldModelConfig, seed: int, inputs: dict[str, str], path: Path
) -> dict:
    """Train one member to the end and write it; runs in a Ray worker."""
    data, reader = logs.data, logs.reader if config.structure else None
    trained = train_world_model(data, config, seed=seed, reader=reader)
    bank = data.bank.embeddings
    fidelity: Fidelity = measure_fidelity(trained.model, bank, trained.turns, seed=seed, reader=reader)
    stored = stored_config(trained.model, data.fingerprint.model_dump())
    with write_artifact(path, "world_model", config=stored, inputs=inputs, seed=seed) as staging:
        save_world_model(trained.model, staging)
        staging.metrics |= {"fidelity": fidelity.model_dump(mode="json")}
    return {"energy_score": fidelity.energy_score}
