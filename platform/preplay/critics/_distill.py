"""An ensemble in one small network, and what is lost by it."""

from dataclasses import replace

import numpy as np
import torch
from torch.nn.functional import mse_loss

from preplay.critics._critic import Critic, Member
from preplay.critics._encoder import EncodedPools
from preplay.critics._network import ActionNet, NetworkSize, StateNet, TwinQ
from preplay.seeding import derive_seed, numpy_rng


def distill(critic: Critic, pools: EncodedPools, *, seed: int, width: int = 32, steps: int = 400) -> Critic:
    """A single network of the given width that imitates an ensemble's mean values on these pools.

    All candidates teach it, executed or not. The spread of the ensemble is lost, so gates on it are, too.
    """
    torch.set_num_threads(1)
    acts = critic.config.has_actor
    outputs, scale = (1, np.ones(1)) if acts else (critic.size.outputs, critic.reward_scale)
    target = torch.from_numpy(np.mean(critic.values(pools), axis=0) / scale).float()
    inputs = critic.scaler.inputs(pools)
    size = replace(critic.size, width=width)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(derive_seed(seed, "distill"))
        student = ActionNet(NetworkSize(size.state, size.features, size.embedding, width, outputs))
        unused_q, value = TwinQ(size), StateNet(size, size.outputs)
        actor = ActionNet(NetworkSize(size.state, size.features, size.embedding, width, 1))
    optimizer = torch.optim.AdamW(student.parameters(), 3e-3)
    rng = numpy_rng(seed, "distill batches")
    for _ in range(steps):
        rows = torch.from_numpy(rng.integers(len(target), size=min(512, len(target))))
        loss = mse_loss(student(inputs.rows(rows)), target[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if acts:
        member = Member(unused_q, value, student.eval())
    else:
        unused_q.first, unused_q.second = student, student
        member = Member(unused_q.eval(), value, actor)
    config = critic.config.model_copy(update={"members": 1, "width": width})
    return replace(critic, config=config, size=size, members=[member])


def rank_agreement(a: np.ndarray, b: np.ndarray, pools: EncodedPools) -> float:
    """Share of pairs within pools that two scores order alike (pairs tied in either are left out)."""
    same = total = 0
    for start, end in zip(pools.offsets[:-1], pools.offsets[1:], strict=True):
        signs = [np.sign(s[start:end, None] - s[None, start:end]) for s in (a, b)]
        both = (signs[0] != 0) & (signs[1] != 0)
        total += int(both.sum())
        same += int((both & (signs[0] == signs[1])).sum())
    return same / total if total else float("nan")
