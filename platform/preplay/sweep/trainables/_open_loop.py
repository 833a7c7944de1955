"""Held-out multi-step error: imagine along the logged actions of held-out sessions, and compare what came of them.

S held-out sessions, T turns, M = sum of the first T turns of each, D draws.
"""

import numpy as np
import torch

from preplay.actions import SessionReader
from preplay.seeding import torch_generator
from preplay.world_model import AlongLogs, LatentWorldModel, TurnArrays, draw_noise


def open_loop_error(predicted: np.ndarray, actual: np.ndarray) -> float:
    """Root mean square of the difference."""
    return float(np.sqrt(np.mean((predicted - actual) ** 2)))


@torch.inference_mode()
def rollout_error(
    model: LatentWorldModel,
    embeddings: np.ndarray,
    turns: TurnArrays,
    *,
    seed: int,
    reader: SessionReader | None = None,
    draws: int = 16,
    horizon: int = 8,
    most_sessions: int = 300,
) -> float:
    """Imagine each held-out session's first ``horizon`` turns: its observations never reach the model again.

    Root mean square error of the rewards and of whether the session ended by itself there, each in units of its
    standard deviation; 1 is always predicting the mean.

    Args:
        embeddings: Bank of text embeddings float32 [N, D] that ``turns`` points into.
        reader: That the model was trained with.
    """
    first = np.flatnonzero((turns.turn == 0) & turns.held_out)[:most_sessions]
    lengths = np.bincount(turns.session)[turns.session[first]]
    repeated = np.tile(first, draws)
    bank = torch.as_tensor(np.array(embeddings), device=model.device)
    sessions = AlongLogs(model, bank, turns, repeated, reader)
    rows, rewards, ends = [], [], []
    for step in range(min(horizon, int(lengths.max()))):
        here = np.minimum(step, lengths - 1)
        generator = torch_generator(seed, "open loop", step)
        noise = draw_noise(len(repeated), model.noise_dim, generator).to(model.device)
        drawn, alive = sessions.step(np.tile(first + here, draws), noise), lengths > step
        rows.append(first[alive] + step)
        rewards.append(_mean(drawn.reward, draws)[alive])
        ends.append(_mean(drawn.terminated_prob, draws)[alive])
    at = np.concatenate(rows)
    scale = [
        max(float(values.std()), 1e-6) for values in (turns.reward[at], turns.terminated[at].astype(float))
    ]
    predicted = [np.concatenate(rewards) / scale[0], np.concatenate(ends) / scale[1]]
    actual = [turns.reward[at] / scale[0], turns.terminated[at] / scale[1]]
    return open_loop_error(np.concatenate(predicted), np.concatenate(actual))


def _mean(values: torch.Tensor, draws: int) -> np.ndarray:
    return values.double().cpu().numpy().reshape(draws, -1).mean(0)
