"""From text embeddings to model features: principal components and the task-aware projection phi.

Plain principal components of sentence embeddings made every model fail alike; a bottleneck trained on the logs
to predict the next logged action, reward, termination and return keeps what decisions depend on.
D embedding size, P phi size, K components, L = P + latent components.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from sklearn.cluster import KMeans
from torch import Tensor, nn
from torch.nn import functional as F

from preplay.seeding import derive_seed
from preplay.world_model._config import FeatureConfig
from preplay.world_model._data import TurnArrays
from preplay.world_model._optimise import TrainingTrace, optimise


class Components(nn.Module):
    """Principal components fitted on training texts, scaled so that their mean variance is 1."""

    mean: Tensor
    axes: Tensor
    scale: Tensor
    spread: Tensor

    def __init__(self, dimension: int, count: int):
        super().__init__()
        self.register_buffer("mean", torch.zeros(dimension))
        self.register_buffer("axes", torch.zeros(dimension, count))
        self.register_buffer("scale", torch.ones(1))
        self.register_buffer("spread", torch.ones(count))

    def fit(self, embeddings: Tensor) -> None:
        """Fit on float32 [N, D]; components beyond the rank stay zero."""
        mean = embeddings.mean(0)
        _, singular, axes = torch.linalg.svd(embeddings - mean, full_matrices=False)
        count = min(self.axes.shape[1], len(singular))
        std = singular[:count] / max(1, len(embeddings) - 1) ** 0.5
        signs = torch.sign(axes[:count].gather(1, axes[:count].abs().argmax(1, keepdim=True)))
        self.mean.copy_(mean)
        self.axes.zero_()
        self.axes[:, :count] = (axes[:count] * signs).T
        self.scale.fill_(float(std.square().mean().sqrt().clamp_min(1e-6)))
        self.spread.fill_(1.0)
        self.spread[:count] = std.clamp_min(1e-3 * float(std.max()) + 1e-8)

    def forward(self, embeddings: Tensor) -> Tensor:
        """Scaled components, float32 [..., K]."""
        return (embeddings - self.mean) @ self.axes / self.scale

    def whitened(self, embeddings: Tensor, count: int) -> Tensor:
        """The first components with unit variance each, float32 [..., count]."""
        return (embeddings - self.mean) @ self.axes[:, :count] / self.spread[:count]


class Bottleneck(nn.Module):
    """phi: embedding to P standardised numbers."""

    center: Tensor
    width: Tensor

    def __init__(self, dimension: int, config: FeatureConfig):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(dimension, config.hidden),
            nn.GELU(),
            nn.Dropout(config.dropout),
            nn.Linear(config.hidden, config.phi),
        )
        self.register_buffer("center", torch.zeros(config.phi))
        self.register_buffer("width", torch.ones(config.phi))

    def forward(self, embeddings: Tensor) -> Tensor:
        """float32 [..., P] from float32 [..., D]."""
        return (self.net(embeddings) - self.center) / self.width

    @torch.no_grad()
    def standardise(self, embeddings: Tensor) -> None:
        """Set centre and width so that the given training texts have mean 0 and variance 1."""
        raw = self.net(embeddings)
        self.center.copy_(raw.mean(0))
        self.width.copy_(raw.std(0, correction=0).clamp_min(1e-4))


class TextFeatures(nn.Module):
    """Features of observations, actions and tasks, and the latent that dynamics generate."""

    def __init__(self, dimension: int, config: FeatureConfig):
        super().__init__()
        self.config = config
        self.observation_components = Components(dimension, config.components)
        self.action_components = Components(dimension, config.components)
        self.task_components = Components(dimension, config.components)
        self.observation_phi = Bottleneck(dimension, config)
        self.action_phi = Bottleneck(dimension, config)

    @property
    def size(self) -> int:
        """Features of one text: components and phi."""
        return self.config.components + self.config.phi

    @property
    def latent_size(self) -> int:
        """L: phi and the whitened components."""
        return self.config.phi + self.config.latent_components

    def observation(self, embeddings: Tensor) -> Tensor:
        """float32 [..., K + P]; phi comes last."""
        return torch.cat([self.observation_components(embeddings), self.observation_phi(embeddings)], -1)

    def action(self, embeddings: Tensor) -> Tensor:
        """float32 [..., K + P]; phi comes last."""
        return torch.cat([self.action_components(embeddings), self.action_phi(embeddings)], -1)

    def task(self, embeddings: Tensor) -> Tensor:
        """float32 [..., K]; zeros for texts that are all zero (no task)."""
        present = (embeddings != 0).any(-1, keepdim=True)
        return self.task_components(embeddings) * present

    def latent(self, embeddings: Tensor) -> Tensor:
        """What dynamics generate for an observation: [phi, whitened components], float32 [..., L]."""
        tail = self.observation_components.whitened(embeddings, self.config.latent_components)
        return torch.cat([self.observation_phi(embeddings), tail], -1)

    def metric(self, latents: Tensor) -> Tensor:
        """Latents scaled for nearest-neighbour search: phi counts fully, the tail by ``tail_weight``."""
        weights = torch.ones(self.latent_size, device=latents.device)
        weights[self.config.phi :] = self.config.tail_weight
        return latents * weights


@dataclass(frozen=True)
class _Targets:
    """Per row: standardised reward and return, termination, this and the next action's cluster (-1 none)."""

    reward: Tensor
    value: Tensor
    terminated: Tensor
    cluster: Tensor
    next_cluster: Tensor


class _Heads(nn.Module):
    """phi with the heads that shape it; only phi is kept."""

    def __init__(self, features: TextFeatures, clusters: int):
        super().__init__()
        phi, hidden = features.config.phi, features.config.hidden
        self.observation_phi, self.action_phi = features.observation_phi, features.action_phi
        self.acting = _mlp(3 * phi + 1, hidden, clusters)
        self.outcome = _mlp(4 * phi + 1, hidden, 3 + clusters)
        self.seen = _mlp(phi, hidden, 3)

    def loss(self, texts: dict[str, Tensor], turn: Tensor, targets: _Targets) -> Tensor:
        """Sum of the heads' losses on one batch of turns."""
        seen = torch.cat([texts["now"], texts["after"], texts["before"]])
        now, after, before = self.observation_phi(seen).chunk(3)
        action, acted = self.action_phi(torch.cat([texts["action"], texts["acted"]])).chunk(2)
        present = (turn > 0).float()[:, None]
        before, acted = before * present, acted * present
        past = torch.cat([now, before, acted, turn[:, None]], -1)
        outcome = self.outcome(torch.cat([past, action], -1))
        return (
            F.cross_entropy(self.acting(past), targets.cluster)
            + _outcome_loss(outcome[:, :3], targets)
            + _outcome_loss(self.seen(after), targets)
            + _masked_cross_entropy(outcome[:, 3:], targets.next_cluster)
        )


def _mlp(inputs: int, hidden: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(inputs, hidden), nn.GELU(), nn.Linear(hidden, outputs))


def _outcome_loss(predicted: Tensor, targets: _Targets) -> Tensor:
    reward, value, terminated = predicted.unbind(-1)
    return (
        F.mse_loss(reward, targets.reward)
        + F.mse_loss(value, targets.value)
        + F.binary_cross_entropy_with_logits(terminated, targets.terminated)
    )


def _masked_cross_entropy(logits: Tensor, cluster: Tensor) -> Tensor:
    if not (cluster >= 0).any():
        return logits.sum() * 0
    return F.cross_entropy(logits, cluster, ignore_index=-1)


def fit_features(
    embeddings: np.ndarray,
    turns: TurnArrays,
    config: FeatureConfig,
    horizon: int,
    *,
    seed: int,
    device: str,
    checkpoint: Path | None = None,
) -> tuple[TextFeatures, TrainingTrace]:
    """Fit components and phi on the training sessions; the held-out ones only stop the training early.

    Args:
        embeddings: Bank of text embeddings float32 [N, D].
        checkpoint: File for the state of phi's training.
    """
    torch.manual_seed(derive_seed(seed, "phi", "init"))
    features = TextFeatures(embeddings.shape[1], config).to(device)
    bank = torch.tensor(embeddings, device=device)
    train = turns.rows_of(held_out=False)
    _fit_components(features, bank, turns, train)
    clusters, count = _cluster_actions(embeddings, turns, train, config, seed)
    heads = _Heads(features, count).to(device)
    targets = _targets(turns, train, clusters, device)
    texts = _text_rows(turns)
    scaled_turn = torch.as_tensor(turns.turn / horizon, dtype=torch.float32, device=device)

    def batch_loss(module: nn.Module, rows: Tensor, generator: torch.Generator) -> Tensor:
        assert isinstance(module, _Heads)
        chosen = _Targets(*(getattr(targets, name)[rows] for name in vars(targets)))
        return module.loss({k: bank[v[rows]] for k, v in texts.items()}, scaled_turn[rows], chosen)

    held_out = torch.as_tensor(turns.rows_of(held_out=True))
    trace = optimise(
        heads,
        batch_loss,
        lambda module: float(batch_loss(module, held_out, torch.Generator())),
        torch.as_tensor(train),
        config.optimiser,
        seed=derive_seed(seed, "phi"),
        checkpoint=checkpoint,
    )
    features.eval()
    seen = np.concatenate([turns.observation[train], turns.next_observation[train]])
    features.observation_phi.standardise(bank[torch.as_tensor(seen)])
    features.action_phi.standardise(bank[torch.as_tensor(turns.action[train])])
    return features, trace


def _fit_components(features: TextFeatures, bank: Tensor, turns: TurnArrays, train: np.ndarray) -> None:
    seen = np.unique(np.concatenate([turns.observation[train], turns.next_observation[train]]))
    features.observation_components.fit(bank[torch.as_tensor(seen)])
    features.action_components.fit(bank[torch.as_tensor(np.unique(turns.action[train]))])
    tasks = np.unique(turns.task[train])
    if len(tasks[tasks >= 0]) > 1:
        features.task_components.fit(bank[torch.as_tensor(tasks[tasks >= 0])])


def _cluster_actions(
    embeddings: np.ndarray, turns: TurnArrays, train: np.ndarray, config: FeatureConfig, seed: int
) -> tuple[np.ndarray, int]:
    """Cluster of each row's action (int64 [R]) and the number of clusters; fitted on training actions."""
    distinct = embeddings[np.unique(turns.action[train])]
    count = min(config.action_clusters, len(distinct))
    means = KMeans(count, random_state=derive_seed(seed, "clusters") % 2**32).fit(distinct)
    return np.asarray(means.predict(embeddings[turns.action]), np.int64), count


def _targets(turns: TurnArrays, train: np.ndarray, cluster: np.ndarray, device: str) -> _Targets:
    follows = np.append(turns.session[1:] == turns.session[:-1], False)
    next_cluster = np.where(follows, np.roll(cluster, -1), -1)

    def standard(values: np.ndarray) -> Tensor:
        center, width = values[train].mean(), max(values[train].std(), 1e-6)
        return torch.as_tensor((values - center) / width, dtype=torch.float32, device=device)

    return _Targets(
        standard(turns.reward),
        standard(turns.return_to_go),
        torch.as_tensor(turns.terminated, dtype=torch.float32, device=device),
        torch.as_tensor(cluster, device=device),
        torch.as_tensor(next_cluster, device=device),
    )


def _text_rows(turns: TurnArrays) -> dict[str, Tensor]:
    """Bank rows of the five texts of a turn; the first turn's 'before' is masked by the caller."""
    previous = np.maximum(np.arange(len(turns)) - 1, 0)
    rows = {
        "now": turns.observation,
        "action": turns.action,
        "after": turns.next_observation,
        "before": turns.observation[previous],
        "acted": turns.action[previous],
    }
    return {name: torch.as_tensor(value) for name, value in rows.items()}
