"""The training loop: resumes bit by bit, stops early, refuses NaN."""

import pytest
import torch
from torch import nn

from preplay.errors import PreplayError
from preplay.world_model import OptimiserConfig
from preplay.world_model._optimise import learning_rate, optimise

CONFIG = OptimiserConfig(steps=500, batch=32, learning_rate=1e-2, warmup=10, evaluate_every=50, patience=20)
ROWS = torch.arange(256)
INPUTS = torch.randn(256, 4, generator=torch.Generator().manual_seed(0))
TARGETS = INPUTS @ torch.tensor([1.0, -2.0, 0.5, 3.0])


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.net = nn.Sequential(nn.Linear(4, 16), nn.GELU(), nn.Dropout(0.1), nn.Linear(16, 1))

    def forward(self, x):
        return self.net(x)[:, 0]


def loss(module, rows, generator):
    noise = 0.1 * torch.randn(len(rows), generator=generator)
    return ((module(INPUTS[rows]) - TARGETS[rows] + noise) ** 2).mean()


def held_out(module):
    return ((module(INPUTS) - TARGETS) ** 2).mean().item()


def train(module, tmp_path=None, loss=loss, config=CONFIG):
    checkpoint = tmp_path / "part.safetensors" if tmp_path else None
    return optimise(module, loss, held_out, ROWS, config, seed=3, checkpoint=checkpoint)


def test_training_learns_and_keeps_the_best_average():
    net = Net()
    trace = train(net)
    assert held_out(net) == pytest.approx(trace.best)
    assert trace.best < 0.1 * float((TARGETS**2).mean())


def test_killed_and_resumed_equals_uninterrupted(tmp_path):
    whole, resumed = Net(), Net()
    train(whole)
    calls = 0

    def dies_at_step_450(module, rows, generator):
        nonlocal calls
        calls += 1
        if calls > 450:
            raise KeyboardInterrupt
        return loss(module, rows, generator)

    with pytest.raises(KeyboardInterrupt):
        train(Net(), tmp_path, dies_at_step_450)
    trace = train(resumed, tmp_path)
    assert trace.steps == 500
    assert all(torch.equal(a, b) for a, b in zip(whole.parameters(), resumed.parameters(), strict=True))


def test_the_resumed_run_repeats_only_the_steps_after_the_checkpoint(tmp_path):
    train(Net(), tmp_path, config=CONFIG.model_copy(update={"steps": 400}))
    calls = []

    def counted(module, rows, generator):
        calls.append(1)
        return loss(module, rows, generator)

    train(Net(), tmp_path, counted)
    assert len(calls) == 100


def test_nan_stops_with_a_diagnosis():
    calls = []

    def breaks_at_step_59(module, rows, generator):
        calls.append(1)
        return loss(module, rows, generator) * (float("nan") if len(calls) == 60 else 1.0)

    with pytest.raises(
        PreplayError, match=r"diverged at step 59: loss nan.*learning rate.*held-out loss was"
    ):
        train(Net(), loss=breaks_at_step_59)


def test_patience_ends_training():
    config = OptimiserConfig(steps=5000, batch=32, evaluate_every=10, patience=3)
    values = iter([3.0, 2.0, 2.5, 2.5, 2.5, 1.0])
    trace = optimise(Net(), loss, lambda module: next(values), ROWS, config, seed=0)
    assert (trace.steps, trace.best_step, trace.best) == (50, 20, 2.0)


def test_learning_rate_by_hand():
    config = OptimiserConfig(steps=110, warmup=10, learning_rate=1.0)
    assert learning_rate(0, config) == pytest.approx(0.1)
    assert learning_rate(9, config) == pytest.approx(1.0)
    assert learning_rate(60, config) == pytest.approx(0.5)  # half of the cosine
    assert learning_rate(110, config) == pytest.approx(0.0)
