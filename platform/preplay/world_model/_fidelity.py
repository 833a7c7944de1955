"""How faithful a world model is, measured on held-out sessions with proper scores and open-loop rollouts."""

from dataclasses import dataclass

import numpy as np
import torch
from pydantic import BaseModel
from torch import Tensor

from preplay.actions import SessionReader
from preplay.seeding import numpy_rng, torch_generator
from preplay.world_model._along import AlongLogs
from preplay.world_model._data import TurnArrays
from preplay.world_model._dynamics import DiffusionDynamics, FlowDynamics
from preplay.world_model._model import ConditionTable, LatentWorldModel
from preplay.world_model._protocol import draw_noise

MAX_ROWS = 400
SAMPLES = 16
DRIFT_STEPS = 5
VALUE_ROLLOUTS = 8
CALIBRATION_BINS = 10


class CalibrationBin(BaseModel):
    """Turns whose predicted termination probability falls into one bin."""

    predicted: float
    observed: float
    turns: int


class Fidelity(BaseModel):
    """Quality of a world model on held-out sessions.

    Args:
        held_out_turns: Turns that the figures rest on (at most 400 for those that need samples).
        energy_score: One-step energy score of the generated latent (Gneiting & Raftery 2007); lower is better.
        energy_score_marginal: The same score when the condition is ignored and logged latents are drawn at random.
        cosine: Mean cosine between the embedding features of the decoded and of the real next observation.
        variance_ratio: Variance of generated over variance of real next latents; below 0.9 samples under-disperse.
        condition_effect: Root mean square change of a generated latent number when the condition is removed, under
            the same noise; near 0 the model ignores its condition (posterior collapse). None where undefined.
        reward_rmse, reward_std: Error of the predicted reward, and the error of always predicting the mean.
        termination_ece: Expected calibration error of the termination probability.
        termination_bins: The calibration curve behind it.
        drift: Energy distance between imagined and real latents after k = 1, 2, ... turns of logged actions.
        on_policy_value, logged_value, logged_value_error: Mean discounted return of imagined sessions that act as
            the logs did (nearest logged states), of the held-out sessions, and the latter's standard error.
    """

    held_out_turns: int
    energy_score: float
    energy_score_marginal: float
    cosine: float
    variance_ratio: float
    condition_effect: float | None
    reward_rmse: float
    reward_std: float
    termination_ece: float
    termination_bins: list[CalibrationBin]
    drift: list[float]
    on_policy_value: float
    logged_value: float
    logged_value_error: float


@dataclass(frozen=True)
class _Audit:
    model: LatentWorldModel
    condition: ConditionTable
    latent: Tensor
    bank: Tensor
    turns: TurnArrays
    seed: int
    rows: np.ndarray
    reader: SessionReader | None

    def noise(self, rows: int, *keys: str | int) -> Tensor:
        generator = torch_generator(self.seed, "fidelity", *keys)
        return draw_noise(rows, self.model.noise_dim, generator).to(self.model.device)


@torch.inference_mode()
def measure_fidelity(
    model: LatentWorldModel,
    embeddings: np.ndarray,
    turns: TurnArrays,
    *,
    seed: int,
    reader: SessionReader | None = None,
) -> Fidelity:
    """All figures of :class:`Fidelity` for a trained model.

    Args:
        embeddings: Bank of text embeddings float32 [N, D] that ``turns`` points into.
        reader: That the model was trained with.
    """
    audit, held_out = _audit(model, embeddings, turns, seed, reader), turns.rows_of(held_out=True)
    predicted, probability = _outcomes(audit, held_out)
    ended = turns.terminated[held_out].astype(float)
    bins = calibration_bins(probability, ended)
    logged, error = _logged_value(turns)
    return Fidelity(
        held_out_turns=len(held_out),
        **_one_step(audit),
        condition_effect=_condition_effect(audit),
        reward_rmse=float(np.sqrt(np.mean((predicted - turns.reward[held_out]) ** 2))),
        reward_std=float(turns.reward[held_out].std()),
        termination_ece=sum(b.turns * abs(b.predicted - b.observed) for b in bins) / len(held_out),
        termination_bins=bins,
        drift=_drift(audit),
        on_policy_value=_on_policy_value(audit),
        logged_value=logged,
        logged_value_error=error,
    )


@torch.inference_mode()
def measure_energy_score(
    model: LatentWorldModel,
    embeddings: np.ndarray,
    turns: TurnArrays,
    *,
    seed: int,
    reader: SessionReader | None = None,
) -> float:
    """``energy_score`` of :func:`measure_fidelity`, to the bit, and nothing else."""
    audit = _audit(model, embeddings, turns, seed, reader)
    return energy_score(_samples(audit), audit.latent[torch.as_tensor(audit.rows)])


def _audit(
    model: LatentWorldModel,
    embeddings: np.ndarray,
    turns: TurnArrays,
    seed: int,
    reader: SessionReader | None,
) -> _Audit:
    bank = torch.tensor(embeddings, device=model.device)
    condition = ConditionTable.build(model, bank, turns, reader.logged() if reader else None)
    latent = model.latent(bank)[torch.as_tensor(turns.next_observation, device=model.device)]
    held_out = turns.rows_of(held_out=True)
    count = min(MAX_ROWS, len(held_out))
    rows = np.sort(numpy_rng(seed, "fidelity rows").choice(held_out, count, replace=False))
    return _Audit(model, condition, latent, bank, turns, seed, rows, reader)


def _samples(audit: _Audit) -> Tensor:
    """Generated next latents of the looked-at rows, float32 [SAMPLES, B, L]."""
    condition = audit.condition(torch.as_tensor(audit.rows))
    drawn = [
        audit.model.dynamics.step(condition, audit.noise(len(audit.rows), "one step", m))
        for m in range(SAMPLES)
    ]
    return torch.stack(drawn)


def calibration_bins(probability: np.ndarray, ended: np.ndarray) -> list[CalibrationBin]:
    """Mean prediction and observed share per tenth of the probability range, empty tenths left out."""
    index = np.minimum((probability * CALIBRATION_BINS).astype(int), CALIBRATION_BINS - 1)
    return [
        CalibrationBin(
            predicted=float(probability[index == b].mean()),
            observed=float(ended[index == b].mean()),
            turns=int((index == b).sum()),
        )
        for b in np.unique(index)
    ]


def energy_score(samples: Tensor, real: Tensor) -> float:
    """Mean energy score of samples float32 [M, B, L] for real float32 [B, L], over the root of L.

    E|X - y| - E|X - X'| / 2, with the second term over distinct pairs of samples.
    """
    count = len(samples)
    to_real = (samples - real).norm(dim=-1).mean()
    between = torch.stack([(samples - samples[i]).norm(dim=-1).sum(0) for i in range(count)]).sum(0)
    spread = between.mean() / (count * (count - 1))
    return float((to_real - 0.5 * spread) / real.shape[-1] ** 0.5)


def energy_distance(a: Tensor, b: Tensor) -> float:
    """Energy distance (Székely & Rizzo 2013) between two sets of points, over the root of their size.

    Unbiased: zero on average for two samples of one distribution, so slightly negative values occur.
    """

    def within(x: Tensor) -> Tensor:
        return torch.cdist(x, x).sum() / max(1, len(x) * (len(x) - 1))

    return float((2 * torch.cdist(a, b).mean() - within(a) - within(b)) / a.shape[-1] ** 0.5)


def _one_step(audit: _Audit) -> dict[str, float]:
    model, rows = audit.model, torch.as_tensor(audit.rows)
    samples, real = _samples(audit), audit.latent[rows]
    rng = numpy_rng(audit.seed, "fidelity marginal")
    train = audit.turns.rows_of(held_out=False)
    marginal = torch.stack(
        [audit.latent[torch.as_tensor(rng.choice(train, len(rows)))] for _ in range(SAMPLES)]
    )
    text_id, _ = model.decoder(model.metric(samples[0]))
    real_features = model.features.observation_components(
        audit.bank[torch.as_tensor(audit.turns.next_observation[audit.rows])]
    )
    decoded = model.bank_features[text_id][:, : real_features.shape[1]]
    return {
        "energy_score": energy_score(samples, real),
        "energy_score_marginal": energy_score(marginal, real),
        "cosine": float(torch.nn.functional.cosine_similarity(decoded, real_features, dim=-1).mean()),
        "variance_ratio": float(samples.flatten(0, 1).var(0).sum() / real.var(0).sum()),
    }


def _condition_effect(audit: _Audit) -> float | None:
    dynamics = audit.model.dynamics
    if not isinstance(dynamics, DiffusionDynamics | FlowDynamics):
        return None
    rows = torch.as_tensor(audit.rows)
    noise = audit.noise(len(rows), "condition effect")
    change = dynamics.step(audit.condition(rows), noise) - dynamics.unconditional(len(rows), noise)
    return float(change.square().mean().sqrt())


def _outcomes(audit: _Audit, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    index = torch.as_tensor(rows)
    reward, ended = audit.model.outcome(audit.condition(index), audit.latent[index])
    return reward.cpu().numpy(), ended.cpu().numpy()


def _first_rows(turns: TurnArrays, held_out: bool) -> np.ndarray:
    return np.flatnonzero((turns.turn == 0) & (turns.held_out == held_out))


def _drift(audit: _Audit) -> list[float]:
    """Imagine along the logged actions of held-out sessions and compare the clouds of latents at each step."""
    turns, first = audit.turns, _first_rows(audit.turns, True)[:MAX_ROWS]
    sessions = AlongLogs(audit.model, audit.bank, turns, first, audit.reader)
    alive, distances = np.arange(len(first)), []
    lengths = np.bincount(turns.session)[turns.session[first]]
    for k in range(DRIFT_STEPS):
        keep = lengths[alive] > k
        if keep.sum() < 10:
            break
        sessions.select(np.flatnonzero(keep))
        alive = alive[keep]
        rows = first[alive] + k
        step = sessions.step(rows, audit.noise(len(first), "drift", k)[alive])
        real = audit.latent[torch.as_tensor(rows)]
        distances.append(energy_distance(audit.model.bank_latents[step.text_id], real))
    return distances


def _on_policy_value(audit: _Audit) -> float:
    """Imagined return when each action is the one of a near logged state (training sessions)."""
    model, turns = audit.model, audit.turns
    train = turns.rows_of(held_out=False)
    logged = audit.condition(torch.as_tensor(train))[:, -1]
    size = model.features.size
    first = np.tile(_first_rows(turns, True)[:MAX_ROWS], VALUE_ROLLOUTS)
    sessions = AlongLogs(audit.model, audit.bank, turns, first, audit.reader)
    survival = torch.ones(len(first), dtype=torch.float64, device=model.device)
    total = torch.zeros_like(survival)
    for k in range(model.horizon):
        newest = sessions.state.window[:, -1]
        keys = torch.cat([logged[:, :size], logged[:, -2:-1]], -1)
        queries = torch.cat([newest[:, :size], newest[:, -2:-1]], -1)
        near = torch.cdist(queries, keys).topk(min(10, len(train)), largest=False).indices.cpu().numpy()
        pick = numpy_rng(audit.seed, "on-policy", k).integers(0, near.shape[1], len(near))
        rows = train[near[np.arange(len(near)), pick]]
        step = sessions.step(rows, audit.noise(len(first), "on-policy", k))
        total += model.config.gamma**k * survival * step.reward
        survival = survival * (1 - step.terminated_prob)
    return float(total.mean())


def _logged_value(turns: TurnArrays) -> tuple[float, float]:
    returns = turns.return_to_go[_first_rows(turns, True)]
    error = returns.std(ddof=1) / np.sqrt(len(returns)) if len(returns) > 1 else np.inf
    return float(returns.mean()), float(error)
