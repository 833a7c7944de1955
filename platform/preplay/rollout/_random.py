"""Draws that belong to a row of the block, so that policies can be compared under the same luck."""

from typing import Any

import numpy as np

from preplay.seeding import derive_seed


class RowGenerator(np.random.Generator):
    """A generator for A of the B rows of a block.

    ``random((A, ...))`` draws for all B rows and returns the A: a row gets the same numbers whichever other rows
    have finished, and so under every policy. Any other draw is made as usual, from the same stream.

    Args:
        total: B.
        rows: int64 [A] rows that still run.
    """

    def __init__(self, seed: int, *keys: str | int, total: int, rows: np.ndarray):
        super().__init__(np.random.PCG64(derive_seed(seed, *keys)))
        self._total, self._rows = total, rows

    def random(self, size: Any = None, dtype: Any = np.float64, out: Any = None) -> Any:  # pyright: ignore
        """Uniform draws in [0, 1)."""
        shape = (size,) if isinstance(size, int | np.integer) else tuple(size or ())
        if out is not None or not shape or shape[0] != len(self._rows):
            return super().random(size, dtype=dtype, out=out)
        return super().random((self._total, *shape[1:]), dtype=dtype)[self._rows]
