"""What the logs look like to a policy and to value functions: agent states, log-ratios, feature rows.

R rows (turns), K sampled actions, DS and DA state and action features.
"""

from dataclasses import dataclass

import numpy as np
import torch

from preplay.embedding import CachedEncoder, EmbeddedTurns
from preplay.policies import AgentState, Policy, StochasticPolicy
from preplay.seeding import numpy_rng
from preplay.world_model import ConditionTable, LatentWorldModel, TurnArrays


@dataclass(frozen=True)
class LoggedStates:
    """Agent states before each logged turn, and (``after``) behind each session's last one."""

    before: list[AgentState]
    after_last: list[AgentState]


def logged_states(data: EmbeddedTurns, reads: int) -> LoggedStates:
    """States with the last ``reads`` turns of history."""
    observation, action = data.turns["observation"].to_pylist(), data.turns["action"].to_pylist()
    following, task = data.turns["next_observation"].to_pylist(), data.turns["task"].to_pylist()
    starts, before, after = data.session_starts, [], []
    for first, end in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
        pairs = list(zip(observation[first:end], action[first:end], strict=True))
        for turn in range(end - first + 1):
            history = tuple(pairs[max(0, turn - reads) : turn])
            seen = observation[first + turn] if first + turn < end else following[end - 1]
            state = AgentState(seen, task[first], history, turn)
            (before if first + turn < end else after).append(state)
    return LoggedStates(before, after)


def some_sessions(data: EmbeddedTurns, sessions: int, seed: int) -> np.ndarray:
    """bool [S]: at most so many sessions."""
    count = len(data.session_starts) - 1
    return np.isin(np.arange(count), numpy_rng(seed, "asked sessions").permutation(count)[:sessions])


def log_ratios(data: EmbeddedTurns, policy: Policy) -> np.ndarray | None:
    """log pi_e - log pi_b of each logged action, float64 [R]; None when either side is unknown."""
    behavior = data.turns["behavior_logprob"].to_numpy(zero_copy_only=False).astype(np.float64)
    if np.isnan(behavior).any() or not isinstance(policy, StochasticPolicy):
        return None
    states = logged_states(data, policy.reads).before
    return policy.log_prob(states, data.turns["action"].to_pylist()) - behavior


@dataclass(frozen=True)
class ValueFeatures:
    """Feature rows of the logged turns for value functions, from a world model's phi.

    Args:
        state: float32 [R, DS]; ``after``: float32 [R, DS] of the state that followed.
        action: float32 [R, DA].
    """

    state: np.ndarray
    action: np.ndarray
    after: np.ndarray


@torch.no_grad()
def value_features(model: LatentWorldModel, data: EmbeddedTurns, turns: TurnArrays) -> ValueFeatures:
    """phi of the window, task and action of every logged turn."""
    bank = torch.tensor(data.bank.embeddings, device=model.device)
    table = ConditionTable.build(model, bank, turns)
    condition = table(torch.arange(len(turns)))
    after_text = model.features.observation(bank)[torch.as_tensor(turns.next_observation)]
    newest = condition[:, -1].clone()
    size = model.features.size
    newest[:, :size] = after_text
    newest[:, size : 2 * size] = 0
    newest[:, -2] += 1 / model.horizon
    after = torch.cat([condition[:, 1:], newest[:, None]], 1)
    return ValueFeatures(
        state_features(model, condition), action_features(model, condition), state_features(model, after)
    )


def state_features(model: LatentWorldModel, condition: torch.Tensor) -> np.ndarray:
    """phi of the observations and earlier actions in the window, task and turn: float32 [B, DS]."""
    size, phi = model.features.size, model.config.features.phi
    observations = condition[:, :, size - phi : size].flatten(1)
    earlier = condition[:, :-1, 2 * size - phi : 2 * size].flatten(1)
    rest = torch.cat([condition[:, -1, 2 * size :][:, : model.context_size], condition[:, -1, -2:-1]], -1)
    return torch.cat([observations, earlier, rest], -1).cpu().numpy()


def action_features(model: LatentWorldModel, condition: torch.Tensor) -> np.ndarray:
    """phi of the newest action: float32 [B, DA]."""
    size, phi = model.features.size, model.config.features.phi
    return condition[:, -1, 2 * size - phi : 2 * size].cpu().numpy()


@torch.no_grad()
def embed_actions(model: LatentWorldModel, actions: np.ndarray) -> np.ndarray:
    """phi of action embeddings: float32 [B, DA] from float32 [B, D]."""
    return model.features.action_phi(torch.as_tensor(actions, device=model.device)).cpu().numpy()


def sampled_actions(
    model: LatentWorldModel,
    policy: Policy,
    states: list[AgentState],
    encoder: CachedEncoder,
    *,
    count: int,
    seed: int,
) -> np.ndarray:
    """phi of ``count`` actions that the policy takes in each state: float32 [B, K, DA].

    A deterministic policy is asked once; K is then 1.
    """
    draws = []
    for k in range(1 if policy.deterministic else count):
        batch = policy.act(states, numpy_rng(seed, "sampled actions", k))
        draws.append(embed_actions(model, encoder.encode(batch.actions)))
    return np.stack(draws, 1)
