"""Rollouts of policies under an ensemble of world models, block by block on a pool of Ray actors."""

import hashlib
import json
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import torch

from preplay.artifacts import read_manifest
from preplay.embedding import CachedEncoder
from preplay.errors import PreplayError
from preplay.policies import Policy
from preplay.rollout._config import RolloutConfig
from preplay.rollout._initial import InitialStates
from preplay.rollout._loop import Block, rollout_block
from preplay.rollout._result import RolloutResult, block_returns, summarise
from preplay.rollout._tool_calls import ToolCalls
from preplay.shards import ShardFolder
from preplay.stage import run_stage
from preplay.world_model import WorldModel

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Job:
    """Everything an actor needs besides the numbers of a block."""

    model_uris: Sequence[str]
    load_model: Callable[[str], WorldModel]
    policies: Mapping[str, Policy]
    encoder: CachedEncoder
    initial: InitialStates
    config: RolloutConfig
    folder: ShardFolder
    calls: ToolCalls | None = None


@dataclass(frozen=True)
class _Task:
    """A block under one policy; ``name`` is the hash of all that decides its content."""

    name: str
    policy: str
    block: Block


@dataclass(frozen=True)
class FinishedBlock:
    """What :func:`run_rollouts` tells of a block that is there; ``done`` of ``total`` are, this one included.

    Args:
        policy: Key of the policy.
        initial: int64 [s] initial state of each of the block's sessions.
        returns: float64 [s] their discounted returns.
    """

    policy: str
    initial: np.ndarray
    returns: np.ndarray
    done: int
    total: int


def run_rollouts(
    model_uris: Sequence[str],
    policies: Mapping[str, Policy],
    initial: InitialStates,
    config: RolloutConfig,
    output_dir: str | Path,
    *,
    load_model: Callable[[str], WorldModel],
    encoder: CachedEncoder,
    calls: ToolCalls | None = None,
    model_keys: Sequence[str] | None = None,
    actors: int | None = None,
    gpus_per_actor: float = 0,
    on_block: Callable[[FinishedBlock], None] | None = None,
) -> dict[str, RolloutResult]:
    """Imagine sessions of every policy; equal for any number of actors, and continued where a kill stopped it.

    Each block's imagined turns are written to ``output_dir`` under the hash of model, policy key, initial states,
    encoder, configuration and block; blocks that are already there are not imagined again.

    Args:
        model_uris: The ensemble's members.
        policies: Picklable policies by key. The key must change when the policy does: it stands for it on disk.
        initial: Where sessions start.
        output_dir: Folder (or fsspec URI all actors reach) of the blocks; runs may share it.
        load_model: Importable function from a member's URI to the model.
        encoder: Embeds actions; its bank should hold the logged ones. Actors get copies.
        calls: For world models that condition on tool calls.
        model_keys: What stands for each member on disk; by default its manifest's content hash.
        actors: Size of the pool; by default one per CPU, or as many as share the GPUs.
        gpus_per_actor: Share of a GPU booked per actor.
        on_block: Called for every block as soon as it is there, for those of an earlier run at once.

    Returns:
        The result of each policy under its key.
    """
    if not policies or not model_uris or not len(initial):
        raise PreplayError("rollouts need at least one policy, one world model and one initial state.")
    folder = ShardFolder(str(output_dir) if "://" in str(output_dir) else str(Path(output_dir).absolute()))
    job = _Job(model_uris, load_model, policies, encoder, initial, config, folder, calls)
    tasks = _plan(job, model_keys or [read_manifest(uri).content_hash for uri in model_uris])
    tables = _Tables(_finished(folder, tasks), tasks, config.gamma, on_block)
    missing = [task for task in tasks if task.name not in tables.by_name]
    log.info("%d of %d blocks are already there", len(tasks) - len(missing), len(tasks))
    items = [_item(task) for task in missing]
    stage = run_stage(
        _RolloutActor, [job], items, title="Imagining sessions", actors=actors, gpus=gpus_per_actor
    )
    for answer in stage:
        for name, path in zip(*answer.to_pydict().values(), strict=True):
            tables.add(name, _read_fresh(folder, path))
    shape = (len(model_uris), len(initial), config.rollouts)
    return {
        key: summarise(
            (tables.by_name[task.name] for task in tasks if task.policy == key), shape, config.gamma
        )
        for key in policies
    }


class _Tables:
    """The blocks that are there, and who wants to be told."""

    def __init__(
        self,
        found: dict[str, pa.Table],
        tasks: Sequence[_Task],
        gamma: float,
        tell: Callable[[FinishedBlock], None] | None,
    ):
        self.by_name: dict[str, pa.Table] = {}
        self._policy = {task.name: task.policy for task in tasks}
        self._gamma, self._tell = gamma, tell
        for name, table in found.items():
            self.add(name, table)

    def add(self, name: str, table: pa.Table) -> None:
        self.by_name[name] = table
        if self._tell:
            initial, returns = block_returns(table, self._gamma)
            self._tell(
                FinishedBlock(self._policy[name], initial, returns, len(self.by_name), len(self._policy))
            )


def blocks_of(members: int, sessions: int, size: int) -> Iterator[Block]:
    """Cut the sessions of every member into blocks."""
    per_member = -(-sessions // size)
    for member in range(members):
        for k in range(per_member):
            yield Block(member * per_member + k, member, k * size, min((k + 1) * size, sessions))


def _plan(job: _Job, model_keys: Sequence[str]) -> list[_Task]:
    shared = [
        job.initial.content_hash,
        job.encoder.fingerprint.model_dump(),
        job.config.model_dump(mode="json"),
        *([job.calls.key] if job.calls else []),
    ]
    sessions = len(job.initial) * job.config.rollouts
    blocks = list(blocks_of(len(model_keys), sessions, job.config.block_size))
    tasks = []
    for key in job.policies:
        for block in blocks:
            content = [*shared, key, model_keys[block.member], block.index, block.start, block.stop]
            name = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
            tasks.append(_Task(f"block-{name[:32]}", key, block))
    return tasks


def _finished(folder: ShardFolder, tasks: Sequence[_Task]) -> dict[str, pa.Table]:
    """Tables of the tasks whose block lies in the folder, undamaged."""
    shards = folder.list()
    tables = {}
    for task in tasks:
        for path in shards.get(task.name, []):
            if (table := folder.read(path)) is not None:
                tables[task.name] = table
    return tables


def _read_fresh(folder: ShardFolder, path: str) -> pa.Table:
    table = folder.read(path)
    if table is None:
        raise PreplayError("a block that was just written is damaged.", where=path, fix="Run again.")
    return table


def _item(task: _Task) -> pa.Table:
    block = task.block
    return pa.table(
        {
            "name": [task.name],
            "policy": [task.policy],
            "index": [block.index],
            "member": [block.member],
            "start": [block.start],
            "stop": [block.stop],
        }
    )


class _RolloutActor:
    """Actor: imagines blocks and writes each one itself, so that a kill loses the block in flight only."""

    def __init__(self, job: _Job):
        torch.set_num_threads(1)  # two threads in one process are slower than two processes
        self._job = job
        self._models: dict[int, WorldModel] = {}

    def __call__(self, item: pa.Table) -> pa.Table:
        (row,) = item.to_pylist()
        name, policy = row.pop("name"), row.pop("policy")
        path = self._job.folder.find(name)  # there when the predecessor was killed before it could answer
        return pa.table({"name": [name], "path": [path or self._imagine(name, policy, Block(**row))]})

    def _imagine(self, name: str, policy: str, block: Block) -> str:
        job, model = self._job, self._model(block.member)
        turns = rollout_block(
            model, job.policies[policy], job.encoder, job.initial, job.config, block, job.calls
        )
        job.encoder.flush()
        return job.folder.write(name, turns)

    def _model(self, member: int) -> WorldModel:
        if member not in self._models:
            self._models[member] = self._job.load_model(self._job.model_uris[member])
        return self._models[member]
