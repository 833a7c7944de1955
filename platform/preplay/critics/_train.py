"""Training: one member after the other, each on its own bootstrap of sessions."""

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor, nn

from preplay.critics import _losses as losses
from preplay.critics._config import CriticConfig
from preplay.critics._critic import Critic, Member
from preplay.critics._decisions import Decisions
from preplay.critics._network import ActionNet, Inputs, NetworkSize, StateNet, TwinQ
from preplay.critics._scaler import Scaler
from preplay.embedding import EncoderFingerprint
from preplay.errors import PreplayError
from preplay.seeding import derive_seed, numpy_rng, torch_generator

Report = Callable[[dict[str, float]], None]
_REPORT_EVERY = 200


@dataclass(frozen=True)
class Batch:
    """B decisions as rows among all candidates, int64; reward [B, H] and flags [B].

    ``pool`` are the P candidates of these decisions, ``owner`` the decision (0..B-1) of each, ``place`` where among
    the P each executed candidate stands, ``chosen`` its row; ``next_pool`` and ``next_owner`` belong to the decisions
    that follow, ``next_first`` is one row of each; ``continues`` says whether one follows, ``valid`` whether the
    target is known.
    """

    pool: Tensor
    owner: Tensor
    place: Tensor
    chosen: Tensor
    reward: Tensor
    next_pool: Tensor
    next_owner: Tensor
    next_first: Tensor
    continues: Tensor
    valid: Tensor


def train_critic(
    config: CriticConfig,
    data: Decisions,
    *,
    seed: int,
    feature_names: tuple[str, ...] = (),
    fingerprint: EncoderFingerprint | None = None,
    report: Report | None = None,
) -> Critic:
    """Train a critic on logged decisions.

    Args:
        config: Algorithm and sizes.
        data: The training split; all statistics come from it.
        seed: Seed of initialisation, bootstrap and batches.
        feature_names: Names of the candidates' features (:attr:`ActionEncoder.feature_names`), kept with the critic.
        fingerprint: Of the sentence encoder; a critic refuses any other.
        report: Called with ``{"step", "member", "loss"}`` every 200 steps (Ray Tune's report fits).
    """
    if not len(data):
        raise PreplayError("there are no decisions to learn from.", fix="Check the dataset and its split.")
    if config.has_actor and len(data.pools.features) == len(data):
        raise PreplayError(
            f"{config.algorithm} learns to choose among logged candidates, and every decision here lists one only.",
            fix="Log the candidates (extras.candidates), or use iql, which needs the executed actions alone.",
        )
    torch.set_num_threads(1)
    scale = np.maximum(data.reward.std(axis=0), 1e-6)
    scaler = Scaler.fit(data.pools)
    size = NetworkSize(
        state=data.pools.state.shape[1],
        features=data.pools.features.shape[1],
        embedding=data.pools.state_embedding.shape[1],
        width=config.width,
        outputs=data.reward.shape[1],
    )
    source = _Source(config, data, scaler, scale)
    members = [
        _train_member(config, source, size, derive_seed(seed, "member", m), m, report)
        for m in range(config.members)
    ]
    return Critic(config, size, scaler, scale, members, feature_names, fingerprint)


class _Source:
    """Batches of decisions, with rewards in standard deviations."""

    def __init__(self, config: CriticConfig, data: Decisions, scaler: Scaler, scale: np.ndarray):
        self.config, self.data = config, data
        self.inputs = scaler.inputs(data.pools)
        self.reward = torch.from_numpy((data.reward / scale).astype(np.float32))
        self.sessions = np.unique(data.session)

    def bootstrap(self, rng: np.random.Generator) -> np.ndarray:
        """Decisions of a bootstrap of sessions, drawn once per member; all of them for a single network."""
        if self.config.members == 1:
            return np.arange(len(self.data))
        drawn = rng.choice(self.sessions, len(self.sessions))
        count = np.bincount(drawn, minlength=int(self.sessions.max()) + 1)[self.data.session]
        return np.repeat(np.arange(len(self.data)), count)

    def batch(self, rows: np.ndarray) -> Batch:
        """The batch of these decisions."""
        data = self.data
        following = data.following[rows]
        goes_on = (following >= 0) & ~data.terminated[rows]
        here, owner, first = _candidates(data.pools.offsets, rows)
        then, next_owner, next_first = _candidates(data.pools.offsets, np.where(goes_on, following, rows))
        cut = data.truncated[rows] & ~data.terminated[rows] & (following < 0)
        return Batch(
            pool=torch.from_numpy(here),
            owner=torch.from_numpy(owner),
            place=torch.from_numpy(data.chosen[rows] - data.pools.offsets[rows] + first),
            chosen=torch.from_numpy(data.chosen[rows]),
            reward=self.reward[rows],
            next_pool=torch.from_numpy(then),
            next_owner=torch.from_numpy(next_owner),
            next_first=torch.from_numpy(then[next_first]),
            continues=torch.from_numpy(goes_on),
            valid=torch.from_numpy(~cut | self.config.budget_ends),
        )


def _candidates(offsets: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Candidate rows of these pools, the pool (0..B-1) of each, and the place where each pool begins."""
    sizes = offsets[rows + 1] - offsets[rows]
    first = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)
    owner = np.repeat(np.arange(len(rows)), sizes)
    return np.arange(sizes.sum()) - first[owner] + offsets[rows][owner], owner, first


def _train_member(
    config: CriticConfig, source: _Source, size: NetworkSize, seed: int, number: int, report: Report | None
) -> Member:
    rng = numpy_rng(seed, "batches")
    pool = source.bootstrap(numpy_rng(seed, "bootstrap"))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(derive_seed(seed, "initialisation") % 2**63)
        learner = _Learner(source, size, torch_generator(seed, "dropout"))
    for step in range(1, config.steps + 1):
        loss = learner.update(
            source.batch(rng.choice(pool, min(config.batch_size, len(pool)), replace=False))
        )
        if report and (step % _REPORT_EVERY == 0 or step == config.steps):
            report({"step": step, "member": number, "loss": loss})
    return learner.member()


class _Learner:
    """Networks of one member and their step."""

    def __init__(self, source: _Source, size: NetworkSize, generator: torch.Generator):
        config = source.config
        self.config, self._inputs, self._generator = config, source.inputs, generator
        self.q, self.v = TwinQ(size), StateNet(size, size.outputs)
        self.actor = ActionNet(NetworkSize(size.state, size.features, size.embedding, size.width, 1))
        self.target = copy.deepcopy(self.q).requires_grad_(False)
        used: list[nn.Module] = [] if config.algorithm == "bc" else [self.q, self.v]
        used += [self.actor] if config.has_actor else []
        parameters = [p for network in used for p in network.parameters()]
        self._optimizer = torch.optim.AdamW(
            parameters, config.learning_rate, weight_decay=config.decay(len(source.data))
        )
        self._schedule = torch.optim.lr_scheduler.CosineAnnealingLR(self._optimizer, config.steps)

    def update(self, batch: Batch) -> float:
        """One step of gradient descent; the loss."""
        loss = self._loss(batch)
        if not torch.isfinite(loss):
            raise PreplayError("training diverged: the loss is not finite.", fix="Lower the learning rate.")
        self._optimizer.zero_grad()
        loss.backward()
        self._optimizer.step()
        self._schedule.step()
        with torch.no_grad():
            for slow, fast in zip(self.target.parameters(), self.q.parameters(), strict=True):
                slow.lerp_(fast, self.config.target_rate)
        return loss.item()

    def member(self) -> Member:
        """The trained networks."""
        return Member(self.q.eval(), self.v.eval(), self.actor.eval())

    def _loss(self, batch: Batch) -> Tensor:
        if self.config.algorithm == "bc":
            return self._clone(batch, torch.ones(len(batch.chosen)))
        if self.config.algorithm == "cql":
            return self._conservative(batch)
        if self.config.algorithm == "actor_critic":
            return self._conservative(batch) + self._act(batch)
        own = self._inputs.rows(batch.chosen)
        with torch.no_grad():
            cautious = self.target(own)
            next_value = self.v(self._inputs.rows(batch.next_first))
        own = self._hide(own)
        value = self.v(own)
        target = losses.bootstrap_target(batch.reward, next_value, batch.continues, self.config.gamma)
        loss = losses.expectile_loss(cautious - value, self.config.tau)
        loss = loss + self._td(self.q.both(own), target, batch.valid)
        if self.config.algorithm == "awr":
            advantage = (cautious - value).sum(dim=1)
            weights = losses.advantage_weights(advantage, self.config.temperature, self.config.weight_ceiling)
            loss = loss + self._clone(batch, weights)
        return loss

    def _conservative(self, batch: Batch) -> Tensor:
        with torch.no_grad():
            next_value = self._next_value(batch)
        target = losses.bootstrap_target(batch.reward, next_value, batch.continues, self.config.gamma)
        first, second = self.q.both(self._hide(self._inputs.rows(batch.pool)))
        penalty = sum(losses.cql_penalty(q.sum(dim=1), batch.owner, batch.place) for q in (first, second))
        return (
            self._td((first[batch.place], second[batch.place]), target, batch.valid)
            + self.config.alpha * penalty
        )

    def _next_value(self, batch: Batch) -> Tensor:
        """Of the next pools: CQL takes the best candidate, an actor-critic what its actor would choose, [B, H]."""
        following = self._inputs.rows(batch.next_pool)
        q, pools = self.target(following), len(batch.chosen)
        if self.config.algorithm == "cql":
            return losses.pool_max(q, batch.next_owner, pools)
        return losses.pool_mean(q, self.actor(following)[:, 0], batch.next_owner, pools)

    def _act(self, batch: Batch) -> Tensor:
        own = self._inputs.rows(batch.pool)
        with torch.no_grad():
            values = self.target(own).sum(dim=1)
        logits = self.actor(self._hide(own))[:, 0]
        return losses.actor_loss(logits, values, batch.owner, len(batch.chosen), self.config.temperature)

    def _td(self, both: tuple[Tensor, Tensor], target: Tensor, valid: Tensor) -> Tensor:
        first, second = (losses.td_loss(q, target, valid, self.config.huber) for q in both)
        return first + second

    def _clone(self, batch: Batch, weights: Tensor) -> Tensor:
        logits = self.actor(self._hide(self._inputs.rows(batch.pool)))[:, 0]
        return losses.cloning_loss(logits, batch.owner, batch.place, weights)

    def _hide(self, inputs: Inputs) -> Inputs:
        """Dropout on state and action features: one mask for the batch, so that candidates stay comparable."""
        if not self.config.dropout:
            return inputs
        return replace(inputs, state=self._mask(inputs.state), features=self._mask(inputs.features))

    def _mask(self, values: Tensor) -> Tensor:
        keep = torch.rand(values.shape[1], generator=self._generator) >= self.config.dropout
        return values * keep / (1 - self.config.dropout)
