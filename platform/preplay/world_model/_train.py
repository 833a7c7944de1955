"""Training of one world model: features, then dynamics and outcome, then what retrieval needs."""

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from preplay.actions import SessionReader, holds_tool_calls
from preplay.embedding import EmbeddedTurns
from preplay.errors import PreplayError
from preplay.seeding import derive_seed, torch_generator
from preplay.world_model._config import WorldModelConfig
from preplay.world_model._data import TurnArrays, turn_arrays
from preplay.world_model._dynamics import Remembering
from preplay.world_model._features import fit_features
from preplay.world_model._model import ConditionTable, LatentWorldModel, ModelShape
from preplay.world_model._optimise import TrainingTrace, optimise

SUPPORT_ROWS = 4000
FEATURES_CHECKPOINT = "features.safetensors"
"""The state of phi's training, finished or not, in the folder of checkpoints."""
Progress = Callable[[str, int, float], None]
"""Called with the part in training, the step and the held-out loss."""


@dataclass(frozen=True)
class TrainedModel:
    """A world model, the arrays it was trained on, and how each part's training went."""

    model: LatentWorldModel
    turns: TurnArrays
    traces: dict[str, TrainingTrace]


@dataclass(frozen=True)
class _Job:
    """What the training of the parts shares."""

    model: LatentWorldModel
    condition: ConditionTable
    latent: Tensor
    turns: TurnArrays
    seed: int
    checkpoints: Path | None
    progress: Progress

    def rows(self, held_out: bool) -> Tensor:
        return torch.as_tensor(self.turns.rows_of(held_out))

    def checkpoint(self, part: str) -> Path | None:
        return self.checkpoints / f"{part}.safetensors" if self.checkpoints else None


def train_world_model(
    data: EmbeddedTurns,
    config: WorldModelConfig,
    *,
    seed: int,
    reader: SessionReader | None = None,
    checkpoints: Path | None = None,
    progress: Progress = lambda part, step, value: None,
) -> TrainedModel:
    """Train one world model on embedded logs.

    Args:
        reader: Of the same turns, to condition on what tool calls are made of too.
        checkpoints: Folder for the state of unfinished parts; training continues from what stands there.

    Raises:
        PreplayError: When a loss is not finite, or the logs cannot be split.
    """
    stages = train_in_stages(
        data, config, seed=seed, shares=(1.0,), reader=reader, checkpoints=checkpoints, progress=progress
    )
    return next(stages)


def train_in_stages(
    data: EmbeddedTurns,
    config: WorldModelConfig,
    *,
    seed: int,
    shares: tuple[float, ...],
    reader: SessionReader | None = None,
    checkpoints: Path | None = None,
    progress: Progress = lambda part, step, value: None,
) -> Iterator[TrainedModel]:
    """Train one world model and pause after each cumulative share of its steps, with a model that can be used.

    The learning rate is planned for all steps; phi is trained to the end before the first pause. More than one share
    needs ``checkpoints``. What is yielded is one and the same model, trained on in between.
    """
    turns = turn_arrays(
        data,
        gamma=config.gamma,
        validation_fraction=config.validation_fraction,
        split_by=config.split_by,
        seed=seed,
    )
    horizon = config.horizon or int(turns.turn.max()) + 1
    if horizon <= turns.turn.max():
        raise PreplayError(
            f"the horizon is {horizon} turns, but a logged session has {turns.turn.max() + 1}.",
            fix="Raise world_model.horizon, or leave it out.",
        )
    device = config.resolved_device()
    if checkpoints:
        checkpoints.mkdir(parents=True, exist_ok=True)
    features, trace = fit_features(
        data.bank.embeddings,
        turns,
        config.features,
        horizon,
        seed=seed,
        device=device,
        checkpoint=checkpoints / FEATURES_CHECKPOINT if checkpoints else None,
    )
    tasks = np.unique(turns.task)
    structure = reader.logged() if reader else None
    size = structure.shape[1] if structure is not None else 0
    shape = ModelShape(data.bank.embeddings.shape[1], horizon, len(tasks[tasks >= 0]) > 1, size)
    torch.manual_seed(derive_seed(seed, "dynamics", "init"))
    model = LatentWorldModel(config, shape, columns=reader.columns if reader else None).to(device)
    model.features = features
    bank = torch.tensor(data.bank.embeddings, device=device)
    job = _prepare(model, bank, turns, structure, seed, checkpoints, progress)
    for share in shares:
        traces = {"features": trace} | _train_parts(job, share)
        yield TrainedModel(_add_retrieval(model, job, bank, data.bank.texts), turns, traces)


def tool_call_reader(data: EmbeddedTurns) -> SessionReader | None:
    """What reads the tool calls of these logs; None where fewer than a fifth of the actions are such."""
    return SessionReader(data.turns) if holds_tool_calls(data.turns["action"].to_pylist()) else None


@torch.no_grad()
def _prepare(
    model: LatentWorldModel,
    bank: Tensor,
    turns: TurnArrays,
    structure: np.ndarray | None,
    seed: int,
    checkpoints: Path | None,
    progress: Progress,
) -> _Job:
    """Standardise latents and features of tool calls on the training rows, and tabulate conditions."""
    after = torch.as_tensor(turns.next_observation, device=bank.device)
    raw = model.features.latent(bank)
    train = torch.as_tensor(turns.rows_of(held_out=False), device=bank.device)
    model.latent_mean.copy_(raw[after[train]].mean(0))
    model.latent_std.copy_(raw[after[train]].std(0, correction=0).clamp_min(1e-4))
    if structure is not None:
        seen = torch.as_tensor(structure[train.cpu().numpy()], dtype=torch.float32)
        model.structure_mean.copy_(seen.mean(0))
        spread = seen.std(0, correction=0)
        model.structure_std.copy_(torch.where(spread > 1e-6, spread, 1.0))
    condition = ConditionTable.build(model, bank, turns, structure)
    model.outcome.standardise(torch.as_tensor(turns.reward)[train.cpu()])
    return _Job(model, condition, model.latent(bank)[after], turns, seed, checkpoints, progress)


def _train_parts(job: _Job, share: float) -> dict[str, TrainingTrace]:
    traces = {"outcome": _train_outcome(job, share)}
    dynamics = job.model.dynamics
    if isinstance(dynamics, Remembering):
        train = job.rows(held_out=False)
        dynamics.fit(job.condition(train), job.latent[train])
    else:
        traces["dynamics"] = _train_dynamics(job, share)
    return traces


def _until(steps: int, share: float) -> int:
    return max(1, round(steps * share))


def _train_dynamics(job: _Job, share: float) -> TrainingTrace:
    def loss(module: nn.Module, rows: Tensor, generator: torch.Generator) -> Tensor:
        return module.loss(job.condition(rows), job.latent[rows], generator)  # pyright: ignore

    def held_out(module: nn.Module) -> float:
        # The same noise at each evaluation, so that evaluations can be compared.
        return float(loss(module, job.rows(held_out=True), torch_generator(job.seed, "held-out noise")))

    return optimise(
        job.model.dynamics,
        loss,
        held_out,
        job.rows(held_out=False),
        job.model.config.optimiser,
        seed=derive_seed(job.seed, "dynamics"),
        checkpoint=job.checkpoint("dynamics"),
        until=_until(job.model.config.optimiser.steps, share),
        progress=lambda step, value: job.progress("dynamics", step, value),
    )


def _train_outcome(job: _Job, share: float) -> TrainingTrace:
    device = job.model.device
    reward = torch.as_tensor(job.turns.reward, dtype=torch.float32, device=device)
    ended = torch.as_tensor(job.turns.terminated, dtype=torch.float32, device=device)

    def loss(module: nn.Module, rows: Tensor, generator: torch.Generator) -> Tensor:
        return module.loss(job.condition(rows), job.latent[rows], reward[rows], ended[rows])  # pyright: ignore

    return optimise(
        job.model.outcome,
        loss,
        lambda module: float(loss(module, job.rows(held_out=True), torch.Generator())),
        job.rows(held_out=False),
        job.model.config.outcome,
        seed=derive_seed(job.seed, "outcome"),
        checkpoint=job.checkpoint("outcome"),
        until=_until(job.model.config.outcome.steps, share),
        progress=lambda step, value: job.progress("outcome", step, value),
    )


@torch.no_grad()
def _add_retrieval(model: LatentWorldModel, job: _Job, bank: Tensor, texts: list[str]) -> LatentWorldModel:
    """Fill the decoder's bank (training sessions' next observations) and the support reference."""
    train = job.turns.rows_of(held_out=False)
    ids = np.unique(job.turns.next_observation[train])
    embeddings = bank[torch.as_tensor(ids, device=bank.device)]
    model.bank_features = model.features.observation(embeddings)
    model.bank_latents = model.latent(embeddings)
    model.decoder.fit(model.metric(model.bank_latents))
    sample = train[:: max(1, len(train) // SUPPORT_ROWS)]
    model.support.fit(model.support_key(job.condition(torch.as_tensor(sample))))
    model.texts = [texts[i] for i in ids]
    neighbours = len(model.dynamics.latents) if isinstance(model.dynamics, Remembering) else 0
    model.shape = replace(model.shape, bank=len(ids), support=len(sample), neighbours=neighbours)
    return model.eval()


def stored_config(model: LatentWorldModel, encoder: dict[str, object]) -> dict[str, object]:
    """What the manifest of a world model keeps beside the weights."""
    columns: dict[str, object] = {"columns": asdict(model.columns)} if model.columns else {}
    return columns | {
        "model": model.config.model_dump(mode="json"),
        "shape": asdict(model.shape),
        "encoder": encoder,
    }
