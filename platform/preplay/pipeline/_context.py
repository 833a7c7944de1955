"""What the evaluation of every policy shares: logs, encoder, world models, features, initial states."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from preplay.artifacts import open_artifact
from preplay.embedding import CachedEncoder, EmbeddedTurns, EmbeddingCache, encoder_config, load_embedded
from preplay.environments import Environment, get_environment
from preplay.errors import PreplayError
from preplay.estimators import SessionBatch, starts_differ
from preplay.pipeline._config import PreplayConfig
from preplay.pipeline._logged import ValueFeatures, value_features
from preplay.rollout import InitialStates
from preplay.seeding import numpy_rng
from preplay.world_model import (
    ConditionTable,
    Fidelity,
    LatentWorldModel,
    TurnArrays,
    list_members,
    load_world_model,
    member_fidelity,
    turn_arrays,
    world_model_encoder,
)

SUPPORT_QUANTILE = 0.95
"""Held-out logged turns stay within the support radius with this probability."""


@dataclass(frozen=True)
class EvaluationRequest:
    """What to evaluate, on what, and where to write.

    Args:
        data: Embedded dataset; models: folder of the world models.
        policies: Policy specifications.
        output: Folder of the report; imagined sessions are kept in ``output/rollouts``.
        cache: Folder of the embedding cache.
        environment: Known environment that ``env:`` policies belong to; gives true values.
        estimators: Estimators to report; all that the logs allow by default.
        without: Logged policies whose sessions are left out.
        truth_sessions: Sessions played per policy for the true value where the environment is known.
    """

    data: str
    models: str
    policies: tuple[str, ...]
    output: Path
    cache: Path
    environment: str | None = None
    estimators: tuple[str, ...] | None = None
    without: tuple[str, ...] = ()
    truth_sessions: int = 20_000


@dataclass(frozen=True)
class Context:
    """Everything loaded once; see the module."""

    request: EvaluationRequest
    config: PreplayConfig
    data: EmbeddedTurns
    encoder: CachedEncoder
    members: list[Path]
    fidelity: list[Fidelity]
    model: LatentWorldModel
    turns: TurnArrays
    features: ValueFeatures
    support_distance: np.ndarray
    initial_sessions: np.ndarray
    environment: Environment | None
    starts_differ: str | None
    """The logging policy whose sessions start in other states than the rest; None where that decides nothing."""

    @property
    def gamma(self) -> float:
        """Discount per turn."""
        return self.model.config.gamma

    @property
    def batch(self) -> SessionBatch:
        """The logged sessions for the estimators, without anything about a target policy."""
        starts = self.data.session_starts
        last = starts[1:] - 1
        terminated = self.data.turns["terminated"].to_numpy(zero_copy_only=False)[last]
        return SessionBatch(
            starts,
            self.turns.reward,
            self.gamma,
            truncated=~terminated,
            terminated=terminated,
            horizon=self.model.horizon,
        )

    @property
    def initial_states(self) -> InitialStates:
        """First states of the chosen logged sessions."""
        return InitialStates.from_turns(self.data, self.data.session_starts[self.initial_sessions], history=0)

    @property
    def support_radius(self) -> float:
        """Support distance that held-out logged turns rarely exceed."""
        held_out = self.support_distance[self.turns.held_out]
        return float(np.quantile(held_out, SUPPORT_QUANTILE))


def load_context(request: EvaluationRequest, config: PreplayConfig) -> Context:
    """Load and check everything that the request names.

    Raises:
        PreplayError: When an artifact is missing or damaged, or world models and data have different encoders.
    """
    members = list_members(request.models)
    data = load_embedded(request.data, expect=world_model_encoder(members[0])).without_policies(
        request.without
    )
    model = load_world_model(members[0])
    _check_horizon(data, model)
    settings = model.config
    seed = open_artifact(members[0], "world_model").manifest.seed
    turns = turn_arrays(
        data,
        gamma=settings.gamma,
        validation_fraction=settings.validation_fraction,
        split_by=settings.split_by,
        seed=seed or 0,
    )
    resolved = encoder_config(open_artifact(request.data, "embedded"))
    cache = EmbeddingCache(str(request.cache), data.fingerprint)
    features = value_features(model, data, turns)
    return Context(
        request=request,
        config=config,
        data=data,
        encoder=CachedEncoder(resolved, data.bank, cache=cache, expect=data.fingerprint),
        members=members,
        fidelity=[member_fidelity(path) for path in members],
        model=model,
        turns=turns,
        features=features,
        support_distance=_support_distances(model, data, turns),
        initial_sessions=_initial_sessions(data, config),
        environment=get_environment(request.environment) if request.environment else None,
        starts_differ=_starts_differ(data, features, config.seed),
    )


def _check_horizon(data: EmbeddedTurns, model: LatentWorldModel) -> None:
    longest = int(np.diff(data.session_starts).max())
    if longest > model.horizon:
        raise PreplayError(
            f"a logged session has {longest} turns, but the world model's horizon is {model.horizon}.",
            fix="Train the world models on these logs, or set world_model.horizon.",
        )


def _starts_differ(data: EmbeddedTurns, features: ValueFeatures, seed: int) -> str | None:
    """Looked at once for all policies, and only where logged propensities let sessions be weighed at all."""
    if data.turns["behavior_logprob"].null_count:
        return None
    return starts_differ(features.state[data.session_starts[:-1]], data.session_policy, seed)


def _initial_sessions(data: EmbeddedTurns, config: PreplayConfig) -> np.ndarray:
    """Sessions whose first states imagined sessions start from, int64 [n], in order."""
    count, most = len(data.session_starts) - 1, config.evaluation.max_initial_states
    if count <= most:
        return np.arange(count)
    return np.sort(numpy_rng(config.seed, "initial sessions").choice(count, most, replace=False))


@torch.no_grad()
def _support_distances(model: LatentWorldModel, data: EmbeddedTurns, turns: TurnArrays) -> np.ndarray:
    """Distance of each logged turn from the nearest training turn, float32 [R]."""
    bank = torch.tensor(data.bank.embeddings, device=model.device)
    condition = ConditionTable.build(model, bank, turns)
    parts = [
        model.support(model.support_key(condition(rows)))[1]
        for rows in torch.arange(len(turns)).split(20_000)
    ]
    return torch.cat(parts).cpu().numpy()
