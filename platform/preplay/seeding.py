"""Independent random streams derived from one user-set seed, so that work can be cut up in any way.

A stream belongs to *what* is drawn (a block of rollouts, a training step), never to the process that
draws it: the same seed gives the same result on one worker or on a hundred.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import torch


def derive_seed(seed: int, *keys: str | int) -> int:
    """A 63-bit seed that depends on ``seed`` and on every key, and on nothing else."""
    text = "\x1f".join([str(seed), *map(str, keys)])
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") >> 1


def numpy_rng(seed: int, *keys: str | int) -> np.random.Generator:
    """A NumPy generator for the stream named by ``keys``."""
    return np.random.default_rng(derive_seed(seed, *keys))


def torch_generator(seed: int, *keys: str | int, device: str = "cpu") -> torch.Generator:
    """A torch generator for the stream named by ``keys``."""
    import torch  # half of the start-up time of processes that only read logs

    return torch.Generator(device=device).manual_seed(derive_seed(seed, *keys))
