"""The world model as a whole: features, dynamics, reward and termination, and decoding by retrieval."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from preplay.actions import Columns
from preplay.artifacts import Artifact, Staging, open_artifact
from preplay.embedding import EncoderFingerprint
from preplay.errors import PreplayError
from preplay.world_model._config import WorldModelConfig
from preplay.world_model._data import TurnArrays
from preplay.world_model._dynamics import DYNAMICS, Remembering
from preplay.world_model._features import TextFeatures
from preplay.world_model._neighbours import NearestRows
from preplay.world_model._outcome import OutcomeNet
from preplay.world_model._protocol import Transition, WorldState

KIND = "world_model"
FLAGS = 2  # turn / horizon, and whether the turn exists
FAR = 5.0  # standard deviations beyond which a feature of a tool call is cut


@dataclass(frozen=True)
class ModelShape:
    """Sizes that are known only from the logs: embedding size D, horizon H, features of a tool call (0 where actions
    are plain text), bank and support rows."""

    dimension: int
    horizon: int
    with_task: bool
    structured: int = 0
    bank: int = 0
    support: int = 0
    neighbours: int = 0


class LatentWorldModel(nn.Module):
    """A world model that generates the latent of the next observation and snaps it to a logged one.

    Satisfies :class:`preplay.world_model.WorldModel`. ``columns`` are those of the features of tool calls, None where
    actions are plain text.
    """

    structure_mean: Tensor
    structure_std: Tensor
    latent_mean: Tensor
    latent_std: Tensor
    bank_features: Tensor
    bank_latents: Tensor

    def __init__(
        self,
        config: WorldModelConfig,
        shape: ModelShape,
        texts: Sequence[str] = (),
        columns: Columns | None = None,
    ):
        super().__init__()
        self.columns = columns
        self.config, self.shape, self.texts, self.horizon = config, shape, texts, shape.horizon
        self.features = TextFeatures(shape.dimension, config.features)
        latent, turn = self.features.latent_size, self.turn_size
        kind = DYNAMICS[config.dynamics]
        stored = (shape.neighbours,) if issubclass(kind, Remembering) else ()
        self.dynamics = kind(latent, turn, config, *stored)
        self.outcome = OutcomeNet(latent, turn, config)
        self.decoder = NearestRows(shape.bank, latent)
        self.support = NearestRows(shape.support, 2 * config.features.phi)
        if shape.structured:
            self.register_buffer("structure_mean", torch.zeros(shape.structured))
            self.register_buffer("structure_std", torch.ones(shape.structured))
        self.register_buffer("latent_mean", torch.zeros(latent))
        self.register_buffer("latent_std", torch.ones(latent))
        self.register_buffer("bank_features", torch.zeros(shape.bank, self.features.size))
        self.register_buffer("bank_latents", torch.zeros(shape.bank, latent))

    @property
    def noise_dim(self) -> int:
        """Z: normal numbers per session and turn."""
        return self.dynamics.noise_dim

    @property
    def context_size(self) -> int:
        """Features of the task; none when the logs hold a single one."""
        return self.config.features.components if self.shape.with_task else 0

    @property
    def turn_size(self) -> int:
        """F: features of one turn in the window."""
        return 2 * self.features.size + self.context_size + self.shape.structured + FLAGS

    @property
    def device(self) -> torch.device:
        """Where the parameters are."""
        return self.latent_mean.device

    @torch.inference_mode()
    def start(
        self,
        observation: Tensor,
        *,
        task: Tensor | None = None,
        history: Tensor | None = None,
        turn: Tensor | None = None,
    ) -> WorldState:
        """See :meth:`preplay.world_model.WorldModel.start`."""
        rows, device = len(observation), self.device
        turn = torch.zeros(rows, dtype=torch.int64, device=device) if turn is None else turn.to(device)
        context = torch.zeros(rows, self.context_size, device=device)
        if task is not None and self.shape.with_task:
            context = self.features.task(task.to(device))
        window = torch.zeros(rows, self.config.window, self.turn_size, device=device)
        newest = self.features.observation(observation.to(device))
        window[:, -1] = self._turn_features(newest, None, turn, context)
        if history is not None and self.config.window > 1 and history.shape[1]:
            self._fill_history(window, history.to(device), turn, context)
        return WorldState(window, turn, context)

    @torch.inference_mode()
    def step(
        self, state: WorldState, action: Tensor, noise: Tensor, structure: np.ndarray | None = None
    ) -> Transition:
        """See :meth:`preplay.world_model.WorldModel.step`.

        Args:
            structure: float64 [B, ·] features of the actions as tool calls, by a
                :class:`preplay.actions.SessionReader`; a model that learned with them cannot do without.
        """
        size = self.features.size
        acted = self.features.action(action.to(self.device))
        window = state.window.clone()
        window[:, -1, size : 2 * size] = acted
        if self.shape.structured:
            if structure is None:
                raise PreplayError(
                    "this world model reads what tool calls are made of, and was given their texts alone.",
                    fix="Train one without it: set world_model.structure to false.",
                )
            window[:, -1, -FLAGS - self.shape.structured : -FLAGS] = self.scaled_structure(structure)
        with torch.autocast("cuda", torch.bfloat16, enabled=self.device.type == "cuda"):
            latent = self.dynamics.step(window, noise.to(self.device)).float()
        text_id, snap = self.decoder(self.metric(latent))
        reward, terminated = self.outcome(window, self.bank_latents[text_id])
        _, support = self.support(self.support_key(window))
        turn = state.turn + 1
        newest = self._turn_features(self.bank_features[text_id], None, turn, state.context)
        after = torch.cat([window[:, 1:], newest[:, None]], 1)
        return Transition(text_id, reward, terminated, snap, support, WorldState(after, turn, state.context))

    def scaled_structure(self, features: np.ndarray) -> Tensor:
        """Features of tool calls as the condition holds them, float32 [..., ·]."""
        raw = torch.as_tensor(features, dtype=torch.float32, device=self.device)
        return ((raw - self.structure_mean) / self.structure_std).clamp(-FAR, FAR)

    def latent(self, observation: Tensor) -> Tensor:
        """Standardised latent float32 [B, L] of observation embeddings."""
        return (self.features.latent(observation) - self.latent_mean) / self.latent_std

    def metric(self, latent: Tensor) -> Tensor:
        """Latents as they are compared by the decoder."""
        return self.features.metric(latent)

    def support_key(self, window: Tensor) -> Tensor:
        """phi of the newest observation and action, float32 [B, 2P]."""
        size, phi = self.features.size, self.config.features.phi
        newest = window[:, -1]
        return torch.cat([newest[:, size - phi : size], newest[:, 2 * size - phi : 2 * size]], -1)

    def _turn_features(
        self, observation: Tensor, action: Tensor | None, turn: Tensor, context: Tensor
    ) -> Tensor:
        """Features of one turn float32 [B, F]: observation, action and its structure (zeros where it is not known),
        task, flags."""
        action = torch.zeros_like(observation) if action is None else action
        structure = observation.new_zeros(len(observation), self.shape.structured)
        flags = torch.stack([turn / self.horizon, torch.ones_like(turn)], -1).to(observation.dtype)
        return torch.cat([observation, action, context, structure, flags], -1)

    def _fill_history(self, window: Tensor, history: Tensor, turn: Tensor, context: Tensor) -> None:
        past = min(history.shape[1], self.config.window - 1)
        for back in range(1, past + 1):
            observation, action = history[:, -back].unbind(1)
            filled = self._turn_features(
                self.features.observation(observation), self.features.action(action), turn - back, context
            )
            exists = ((turn - back) >= 0)[:, None]
            window[:, -1 - back] = torch.where(exists, filled, torch.zeros_like(filled))


@dataclass(frozen=True)
class ConditionTable:
    """Conditions of logged turns, gathered on demand: float32 [B, W, F] for rows int64 [B]."""

    model: LatentWorldModel
    observations: Tensor
    actions: Tensor
    tasks: Tensor
    structure: Tensor
    window: Tensor
    turn: Tensor

    @classmethod
    @torch.no_grad()
    def build(
        cls, model: LatentWorldModel, bank: Tensor, turns: TurnArrays, structure: np.ndarray | None = None
    ) -> "ConditionTable":
        """Features of every text used by the turns, computed once.

        Args:
            structure: float64 [R, ·] features of the actions as tool calls; taken as average where absent.
        """
        tasks = torch.zeros(len(turns), model.context_size, device=bank.device)
        if model.shape.with_task:
            ids = torch.as_tensor(turns.task, device=bank.device)
            tasks = model.features.task(bank)[ids.clamp_min(0)] * (ids >= 0)[:, None]
        device = bank.device
        calls = torch.zeros(len(turns), model.shape.structured, device=device)
        if structure is not None and model.shape.structured:
            calls = model.scaled_structure(structure)
        return cls(
            model,
            model.features.observation(bank)[torch.as_tensor(turns.observation, device=device)],
            model.features.action(bank)[torch.as_tensor(turns.action, device=device)],
            tasks,
            calls,
            torch.as_tensor(turns.window_rows(model.config.window), device=device),
            torch.as_tensor(turns.turn, device=device),
        )

    def __call__(self, rows: Tensor) -> Tensor:
        """Conditions of the given rows."""
        window = self.window[rows.to(self.window.device)]
        exists = (window >= 0)[..., None]
        at = window.clamp_min(0)
        flags = torch.stack([self.turn[at] / self.model.horizon, torch.ones_like(at)], -1)
        parts = [self.observations[at], self.actions[at], self.tasks[at], self.structure[at], flags]
        features = torch.cat(parts, -1)
        return features * exists


def save_world_model(model: LatentWorldModel, staging: Staging) -> None:
    """Write ``model.safetensors`` and ``texts.parquet`` into an artifact that is being staged."""
    tensors = {name: value.detach().cpu().contiguous() for name, value in model.state_dict().items()}
    save_file(tensors, staging.path / "model.safetensors")
    pq.write_table(
        pa.table({"text": pa.array(list(model.texts), pa.string())}), staging.path / "texts.parquet"
    )


def load_world_model(uri: str | Path, device: str | None = None) -> LatentWorldModel:
    """Load a trained world model for inference.

    Args:
        device: Where it runs; by default the configured one (``auto`` takes a GPU when there is one).

    Raises:
        PreplayError: When the artifact is missing, damaged or not a world model.
    """
    return _load(open_artifact(uri, KIND), device)


def world_model_encoder(uri: str | Path) -> EncoderFingerprint:
    """Fingerprint of the encoder whose embeddings a stored world model understands."""
    return EncoderFingerprint.model_validate(open_artifact(uri, KIND).manifest.config["encoder"])


def _load(artifact: Artifact, device: str | None) -> LatentWorldModel:
    stored = artifact.manifest.config
    config = WorldModelConfig.model_validate(stored["model"])
    texts = pq.read_table(artifact.file("texts.parquet"))["text"].to_pylist()
    columns = (
        Columns(**{k: tuple(v) for k, v in stored["columns"].items()}) if stored.get("columns") else None
    )
    model = LatentWorldModel(config, ModelShape(**stored["shape"]), texts, columns)
    model.load_state_dict(load_file(artifact.file("model.safetensors")))
    return model.to(device or config.resolved_device()).eval()
