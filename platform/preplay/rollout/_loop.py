"""The batched imagined-rollout loop: text to the policy, its answers to the world model, and again.

Legend: B sessions of the block, A of them still running, R turns of history the policy reads, D embedding size.
Text ids below ``offset`` are the initial states' bank, the others ``model.texts``; action ids are the encoder's.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import torch

from preplay.embedding import CachedEncoder
from preplay.errors import PreplayError
from preplay.policies import AgentState, Policy
from preplay.rollout._config import RolloutConfig
from preplay.rollout._initial import InitialStates
from preplay.rollout._random import RowGenerator
from preplay.rollout._schema import IMAGINED_SCHEMA
from preplay.rollout._tool_calls import Calls, ToolCalls
from preplay.seeding import torch_generator
from preplay.world_model import Transition, WorldModel, WorldState, draw_noise


@dataclass(frozen=True)
class Block:
    """Sessions ``start`` to ``stop`` of an ensemble member; session s is rollout ``s % N`` of initial ``s // N``.

    ``index`` counts the blocks of all members and names their random streams.
    """

    index: int
    member: int
    start: int
    stop: int

    def __len__(self) -> int:
        return self.stop - self.start


def rollout_block(
    model: WorldModel,
    policy: Policy,
    encoder: CachedEncoder,
    initial: InitialStates,
    config: RolloutConfig,
    block: Block,
    calls: ToolCalls | None = None,
) -> pa.Table:
    """Imagine the block's sessions turn by turn; rows of ``IMAGINED_SCHEMA``, in order of step."""
    sessions = _Sessions(model, policy, encoder, initial, config, block, calls)
    turns = []
    while sessions.running:
        turns.append(sessions.step())
    columns = {name: np.concatenate([turn[name] for turn in turns]) for name in turns[0]}
    texts = {
        "observation": _encoded(sessions.observation_texts[columns.pop("observation")]),
        "action": _encoded(np.array(encoder.texts, object)[columns.pop("action")]),
    }
    return pa.table({name: (columns | texts)[name] for name in IMAGINED_SCHEMA.names}, schema=IMAGINED_SCHEMA)


class _Sessions:
    """The sessions of a block that still run; every array has one row per such session."""

    def __init__(
        self,
        model: WorldModel,
        policy: Policy,
        encoder: CachedEncoder,
        initial: InitialStates,
        config: RolloutConfig,
        block: Block,
        calls: ToolCalls | None,
    ):
        self._model, self._policy, self._encoder = model, policy, encoder
        self._config, self._block, self._bank = config, block, initial.bank
        number = np.arange(block.start, block.stop)
        first = initial.select(number // config.rollouts)
        self._step = 0
        self._row = np.arange(len(block))
        self._initial, self._rollout = number // config.rollouts, number % config.rollouts
        self._observation, self._task, self._turn = first.observation_id, first.task_id, first.turn
        self._history = self._start_history(first)
        self._survival = np.ones(len(block))
        self._state = _start(model, first)
        self._calls = Calls(calls, self._initial, policy.name, model.texts) if calls else None
        self._offset = len(initial.bank.texts)
        self.observation_texts = np.array([*initial.bank.texts, *model.texts], object)
        self._task_texts = np.array([*initial.bank.texts, None], object)  # the last entry answers for -1
        self._action_texts = np.array(encoder.texts, object)
        dead = frozenset(config.dead_ends)
        self._dead = np.fromiter((text in dead for text in model.texts), bool, len(model.texts))
        if (late := int(self._turn.max())) >= model.horizon:
            raise PreplayError(
                f"an initial state is at turn {late}, but the model's sessions end after {model.horizon} turns.",
                fix="Start from earlier turns only.",
            )

    @property
    def running(self) -> bool:
        """Whether any session still runs."""
        return len(self._row) > 0

    def step(self) -> dict[str, np.ndarray]:
        """One turn of all running sessions: its columns. Sessions that are over stop running."""
        action = self._act()
        noise = draw_noise(len(self._block), self._model.noise_dim, self._noise_stream())
        transition = self._model.step(
            self._state,
            torch.from_numpy(self._encoder.embeddings(action)),
            noise if len(self._row) == len(noise) else noise[torch.from_numpy(self._row)],
            *([self._calls.act(self._known_actions(), action)] if self._calls else []),
        )
        columns = self._columns(action, transition)
        self._advance(action, transition, columns["terminated_prob"])
        return columns

    def _act(self) -> np.ndarray:
        """Action id of every session, int64 [A]. A deterministic policy is asked once per distinct state."""
        stream = (self._config.seed, "policy", self._block.index, self._step)
        if not self._policy.deterministic:
            rng = RowGenerator(*stream, total=len(self._block), rows=self._row)
            return self._encoder.ids(self._ask(self._agent_states(slice(None)), rng))
        history = self._history.reshape(len(self._row), -1)
        first, inverse = _distinct(np.column_stack([self._observation, self._task, self._turn, history]))
        rng = RowGenerator(*stream, total=len(first), rows=np.arange(len(first)))
        return self._encoder.ids(self._ask(self._agent_states(first), rng))[inverse]

    def _ask(self, states: list[AgentState], rng: np.random.Generator) -> list[str]:
        actions = self._policy.act(states, rng).actions
        if len(actions) != len(states):
            raise PreplayError(
                f"the policy gave {len(actions)} actions for {len(states)} states.",
                where=f"policy {self._policy.name!r}",
                fix="Return one action per state, in the same order.",
            )
        return actions

    def _agent_states(self, rows: np.ndarray | slice) -> list[AgentState]:
        """What the policy sees of these sessions. Texts are gathered as arrays: a loop would cost more than it."""
        observation = self.observation_texts[self._observation[rows]].tolist()
        task = self._task_texts[self._task[rows]].tolist()
        turn = self._turn[rows].tolist()
        return list(map(AgentState, observation, task, self._history_texts(self._history[rows]), turn))

    def _history_texts(self, history: np.ndarray) -> list[tuple[tuple[str, str], ...]]:
        """Per session its (observation, action) pairs, oldest first, from ids int64 [A, R, 2]."""
        if not history.shape[1]:
            return [()] * len(history)
        texts = self._known_actions()
        columns = [
            zip(self.observation_texts[o].tolist(), texts[a].tolist(), strict=True)
            for o, a in history.transpose(1, 2, 0)
        ]
        missing = (history[:, :, 0] < 0).sum(1)  # always at the front
        return [pairs[m:] for pairs, m in zip(zip(*columns, strict=True), missing.tolist(), strict=True)]

    def _known_actions(self) -> np.ndarray:
        """The encoder's texts as an array."""
        if len(self._action_texts) != len(self._encoder.texts):
            self._action_texts = np.array(self._encoder.texts, object)
        return self._action_texts

    def _columns(self, action: np.ndarray, transition: Transition) -> dict[str, np.ndarray]:
        return {
            "member": np.full(len(action), self._block.member, np.int32),
            "initial": self._initial.astype(np.int32),
            "rollout": self._rollout.astype(np.int32),
            "step": np.full(len(action), self._step, np.int32),
            "turn": self._turn.astype(np.int32),
            "observation": self._observation,
            "action": action,
            "reward": transition.reward.double().cpu().numpy(),
            "terminated_prob": transition.terminated_prob.double().cpu().numpy(),
            "survival": self._survival,
            "snap_distance": transition.snap_distance.float().cpu().numpy(),
            "support_distance": transition.support_distance.float().cpu().numpy(),
        }

    def _advance(self, action: np.ndarray, transition: Transition, terminated: np.ndarray) -> None:
        text_id = transition.text_id.cpu().numpy()
        if reads := self._policy.reads:
            newest = np.stack([self._observation, action], -1)[:, None]
            self._history = np.concatenate([self._history, newest], 1)[:, -reads:]
        self._observation = text_id + self._offset
        self._survival = self._survival * (1 - terminated)
        self._turn = self._turn + 1
        self._step += 1
        self._state = transition.state
        if self._calls:
            self._calls.follow(text_id)
        self._keep(~self._over() & ~self._dead[text_id])

    def _over(self) -> np.ndarray:
        """Which sessions need no further turn, bool [A]."""
        config = self._config
        left = self._model.horizon - self._turn
        if config.horizon is not None:
            left = np.minimum(left, config.horizon - self._step)
        over = (left <= 0) | (self._survival <= config.survival_floor)
        if config.reward_bound is not None:
            turns = left if config.gamma == 1 else (1 - config.gamma**left) / (1 - config.gamma)
            rest = config.gamma**self._step * self._survival * config.reward_bound * turns
            over |= rest <= config.return_tolerance
        return over

    def _keep(self, keep: np.ndarray) -> None:
        if keep.all():
            return
        for name in (
            "_row",
            "_initial",
            "_rollout",
            "_observation",
            "_task",
            "_turn",
            "_history",
            "_survival",
        ):
            setattr(self, name, getattr(self, name)[keep])
        self._state = self._state.select(torch.from_numpy(np.flatnonzero(keep)))
        if self._calls:
            self._calls.keep(keep)

    def _start_history(self, first: InitialStates) -> np.ndarray:
        """The last R logged turns, int64 [B, R, 2]; logged actions are known to the encoder by other ids."""
        reads, logged = self._policy.reads, first.history_id
        history = np.full((len(first), reads, 2), -1, np.int64)
        shared = min(reads, logged.shape[1])
        if shared and (past := logged[:, -shared:]).max() >= 0:
            used = np.unique(past[..., 1][past[..., 1] >= 0])
            ids = np.full(len(self._bank.texts) + 1, -1, np.int64)  # the last entry answers for -1
            ids[used] = self._encoder.ids([self._bank.texts[i] for i in used.tolist()])
            history[:, reads - shared :] = np.stack([past[..., 0], ids[past[..., 1]]], -1)
        return history

    def _noise_stream(self) -> torch.Generator:
        return torch_generator(self._config.seed, "noise", self._block.index, self._step)


def _start(model: WorldModel, first: InitialStates) -> WorldState:
    history = first.embeddings(first.history_id) if (first.history_id >= 0).any() else None
    return model.start(
        torch.from_numpy(first.embeddings(first.observation_id)),
        task=torch.from_numpy(first.embeddings(first.task_id)),
        history=None if history is None else torch.from_numpy(history),
        turn=torch.from_numpy(first.turn),
    )


def _distinct(keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """First row of each distinct key [A, K] in order of appearance, and per row which key it has."""
    _, first, inverse = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    return first[order], rank[inverse.reshape(-1)]


def _encoded(texts: np.ndarray) -> pa.DictionaryArray:
    """The dictionary in order of appearance: ids differ between actors, the file must not."""
    return pa.array(texts, pa.string()).dictionary_encode()
