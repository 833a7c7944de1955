"""A text world model as rows of numbers: states are the features of the last turns, actions are choices.

Legend: B rows, W window, F features of a turn, K of the task, D embedding size.
A state is float32 [B, W * F + K + 2]: window, task, position in the session, row of the newest text (-1: unknown).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from gymnasium.spaces import Box, Discrete

from preplay.policies import AgentState, TextEncoder
from preplay.rehearsal._choices import ActionChoices
from preplay.rehearsal._world import ImaginedStep
from preplay.rollout import InitialStates
from preplay.world_model import WorldModel, WorldState


@dataclass(frozen=True)
class TextWorld:
    """A world learned from logs. What a policy sees is the window, the task and the share of the horizon gone.

    ``uncertainty`` is the distance of (state, action) from the nearest logged one; 1 is typical of logged turns.
    """

    model: WorldModel
    choices: ActionChoices

    @property
    def action_space(self) -> Discrete:
        """Number of a choice."""
        return Discrete(len(self.choices))

    @property
    def observation_space(self) -> Box:
        """float32 [W * F + K + 1]."""
        return Box(-np.inf, np.inf, (self._width + 1,), np.float32)

    @property
    def noise_dim(self) -> int:
        """The model's."""
        return self.model.noise_dim

    def observe(self, state: np.ndarray) -> np.ndarray:
        """float32 [B, W * F + K + 1]."""
        share = state[:, self._width, None] / self.model.horizon
        return np.concatenate([state[:, : self._width], share], 1, dtype=np.float32)

    def step(self, state: np.ndarray, action: np.ndarray, noise: np.ndarray) -> ImaginedStep:
        """The model's step. A state's session is cut once it has ``model.horizon`` turns."""
        embeddings = torch.from_numpy(self.choices.embeddings[action])
        normal = torch.from_numpy(np.ascontiguousarray(noise, np.float32))
        after = self.model.step(self._unpack(state), embeddings, normal)
        turn = after.state.turn.cpu().numpy()
        return ImaginedStep(
            self._pack(after.state, after.text_id.cpu().numpy()),
            after.reward.double().cpu().numpy(),
            after.terminated_prob.double().cpu().numpy(),
            turn >= self.model.horizon,
            after.support_distance.double().cpu().numpy(),
        )

    def logged_states(self, initial: InitialStates) -> np.ndarray:
        """Logged states as rows, float32 [n, W * F + K + 2]."""
        history = initial.embeddings(initial.history_id) if initial.history_id.shape[1] else None
        return self._start(
            initial.embeddings(initial.observation_id),
            initial.embeddings(initial.task_id),
            history,
            initial.turn,
        )

    def agent_states(self, states: Sequence[AgentState], encoder: TextEncoder) -> np.ndarray:
        """What an agent sees in the real world as rows, float32 [B, W * F + K + 2]."""
        observation = encoder.encode([state.observation for state in states])
        task = _encode_some([state.task for state in states], encoder, observation.shape[1])
        longest = max(len(state.history) for state in states)
        history = np.zeros((len(states), longest, 2, observation.shape[1]), np.float32)
        for place in range(longest):
            pairs = [s.history[-1 - place] if place < len(s.history) else (None, None) for s in states]
            for part in (0, 1):
                texts = [pair[part] for pair in pairs]
                history[:, -1 - place, part] = _encode_some(texts, encoder, observation.shape[1])
        turn = np.array([state.turn for state in states], np.int64)
        return self._start(observation, task, history if longest else None, turn)

    def texts(self, state: np.ndarray) -> list[str]:
        """The newest imagined observation of each row; empty for a row that nothing has been imagined in yet."""
        rows = state[:, -1].astype(np.int64).tolist()
        return [str(self.model.texts[row]) if row >= 0 else "" for row in rows]

    @cached_property
    def _probe(self) -> WorldState:
        """A state of one row, for its sizes."""
        return self.model.start(torch.zeros(1, self.choices.embeddings.shape[1]))

    @property
    def _width(self) -> int:
        """W * F + K."""
        return self._probe.window[0].numel() + self._probe.context.shape[1]

    def _start(
        self, observation: np.ndarray, task: np.ndarray, history: np.ndarray | None, turn: np.ndarray
    ) -> np.ndarray:
        state = self.model.start(
            torch.from_numpy(observation),
            task=torch.from_numpy(task),
            history=None if history is None else torch.from_numpy(history),
            turn=torch.from_numpy(turn),
        )
        return self._pack(state, np.full(len(observation), -1))

    def _pack(self, state: WorldState, text_id: np.ndarray) -> np.ndarray:
        window = state.window.flatten(1).cpu().numpy()
        turn = state.turn.cpu().numpy()[:, None]
        columns = [window, state.context.cpu().numpy(), turn, text_id[:, None]]
        return np.concatenate(columns, 1, dtype=np.float32, casting="unsafe")

    def _unpack(self, rows: np.ndarray) -> WorldState:
        device, size = self._probe.window.device, self._probe.window[0].numel()
        tensor = torch.tensor(rows, dtype=torch.float32, device=device)
        window = tensor[:, :size].reshape(-1, *self._probe.window.shape[1:])
        turn = tensor[:, self._width].to(self._probe.turn.dtype)
        return WorldState(window, turn, tensor[:, size : self._width])


def _encode_some(texts: Sequence[str | None], encoder: TextEncoder, dimension: int) -> np.ndarray:
    """Embeddings float32 [B, D]; zeros where there is no text."""
    rows = np.zeros((len(texts), dimension), np.float32)
    there = [i for i, text in enumerate(texts) if text is not None]
    if there:
        rows[there] = encoder.encode([text for text in texts if text is not None])
    return rows
