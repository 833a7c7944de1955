"""Memories: padding leaves no trace, and an aliased world needs one."""

import pytest
import torch

from preplay.world_model._memory import MEMORIES


def conditions(rows: int, window: int, features: int = 6) -> torch.Tensor:
    turns = torch.randn(rows, window, features, generator=torch.Generator().manual_seed(0))
    turns[..., -1] = 1.0
    return turns


@pytest.mark.parametrize("kind", ["gru", "transformer"])
def test_turns_before_the_start_do_not_matter(kind):
    torch.manual_seed(0)
    memory = MEMORIES[kind](5, 6).eval()
    padded = conditions(4, 5)
    padded[:, :3] = 0.0
    garbage = padded.clone()
    garbage[:, :3, :-1] = 7.0  # the flag stays 0: these turns do not exist
    assert torch.allclose(memory(padded), memory(garbage), atol=1e-6)


def test_gru_state_after_padding_equals_state_from_zero():
    torch.manual_seed(0)
    memory = MEMORIES["gru"](5, 6).eval()
    short = conditions(4, 2)
    padded = torch.cat([torch.zeros(4, 3, 6), short], 1)
    assert torch.allclose(memory(padded), memory(short), atol=1e-6)


@pytest.mark.parametrize("kind", ["window", "gru", "transformer"])
def test_every_turn_in_the_window_matters(kind):
    torch.manual_seed(0)
    memory = MEMORIES[kind](4, 6).eval()
    base = conditions(2, 4)
    for turn in range(4):
        changed = base.clone()
        changed[:, turn, 0] += 1.0
        assert not torch.allclose(memory(base), memory(changed), atol=1e-4), turn
