"""What the agent believes the map to be: an egocentric grid filled in by every view and carried along as it moves.

A view alone is no state: what is out of sight would be made up anew with each turn, and a policy learns to turn until
the dream shows a goal. The belief keeps what was seen. Its geometry (how turning and walking shift the grid, which
cells hide others) is the agent's own body and is given; what actions *do* is learned (``_grid_model``).

Shapes: B rows; a grid is uint8 [B, 13, 13] codes indexed [x, y], the agent at (6, 6) looking towards y = 0.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from preplay_rllib._minigrid import EMPTY, FORWARD, LEFT, OPAQUE, RIGHT, UNSEEN, VIEW, WALKABLE

CENTRE = 6
SIDE = 2 * CENTRE + 1
CELLS = SIDE * SIDE
FRONT = CENTRE * SIDE + CENTRE - 1
HERE = CENTRE * SIDE + CENTRE
BEHIND = CENTRE * SIDE + CENTRE + 1
_X = slice(CENTRE - VIEW // 2, CENTRE + VIEW // 2 + 1)
_Y = slice(CENTRE - VIEW + 1, CENTRE + 1)
STAY, STEP = 2, 3


@dataclass(frozen=True)
class Belief:
    """B beliefs.

    Args:
        grid: uint8 [B, 169]; the agent's own cell shows what it carries, as MiniGrid's view does.
        under: uint8 [B] the code of the cell that the agent stands on.
        step: int64 [B] steps since the episode began.
    """

    grid: Tensor
    under: Tensor
    step: Tensor

    def select(self, rows: Tensor) -> "Belief":
        return Belief(self.grid[rows], self.under[rows], self.step[rows])

    def view(self) -> Tensor:
        """uint8 [B, 7, 7] what of the grid lies in the field of view, hidden or not."""
        return self.grid.view(-1, SIDE, SIDE)[:, _X, _Y]


def first_belief(view: Tensor) -> Belief:
    """The belief of episodes that begin with these views uint8 [B, 7, 7]."""
    rows = len(view)
    grid = torch.zeros(rows, CELLS, dtype=torch.uint8, device=view.device)
    under = torch.full((rows,), EMPTY, dtype=torch.uint8, device=view.device)
    return see(Belief(grid, under, torch.zeros(rows, dtype=torch.int64, device=view.device)), view)


def see(belief: Belief, view: Tensor) -> Belief:
    """Write the visible cells of a view uint8 [B, 7, 7] into the grid."""
    grid = belief.grid.clone().view(-1, SIDE, SIDE)
    grid[:, _X, _Y] = torch.where(view == UNSEEN, grid[:, _X, _Y], view)
    return Belief(grid.view(-1, CELLS), belief.under, belief.step)


def move(belief: Belief, action: Tensor, moved: Tensor) -> Belief:
    """Shift the grids by what the body did: turned by ``action`` int64 [B], or stepped ahead where ``moved``."""
    kind = torch.where(moved, STEP, torch.where(action <= RIGHT, action, STAY))
    padded = torch.cat([belief.grid, belief.grid.new_zeros(len(belief.grid), 1)], 1)
    grid = padded.gather(1, _SOURCE.to(padded.device)[kind])
    grid[:, BEHIND] = torch.where(moved, belief.under, grid[:, BEHIND])
    grid[:, HERE] = belief.grid[:, HERE]
    under = torch.where(moved, belief.grid[:, FRONT], belief.under)
    return Belief(grid, under, belief.step + 1)


def walks(belief: Belief, action: Tensor) -> Tensor:
    """bool [B]: the body's own sense of having moved, which the real stream is tracked with."""
    return (action == FORWARD) & _WALKABLE.to(action.device)[belief.grid[:, FRONT].long()]


def visible(view: Tensor, see_through: bool) -> Tensor:
    """bool [B, 7, 7] the cells of a field of view uint8 [B, 7, 7] that MiniGrid shows; what is unknown hides.

    Some tasks (the empty rooms) let the agent see through walls, that is: everything.
    """
    if see_through:
        return torch.ones_like(view, dtype=torch.bool)
    opaque = _OPAQUE.to(view.device)[view.long()] | (view == UNSEEN)
    opaque[:, VIEW // 2, VIEW - 1] = False
    weights = (1 << torch.arange(VIEW, device=view.device)).view(1, VIEW, 1)
    clear = (~opaque * weights).sum(1)  # [B, 7] one bit per column
    row = torch.full_like(clear[:, 0], 1 << (VIEW // 2))
    rows = []
    for y in reversed(range(VIEW)):
        entry = _SIGHT.to(view.device)[row * 128 + clear[:, y]]
        rows.append(entry % 128)
        row = entry // 128
    bits = torch.stack(rows[::-1], 1).unsqueeze(1)  # [B, 1, 7 rows]
    return (bits // weights) % 2 == 1


def _sight_table() -> np.ndarray:
    """MiniGrid's shadow rule for one row: (seen so far, transparent) -> (seen, seen in the row ahead), as bits."""
    seen, clear = np.divmod(np.arange(128 * 128), 128)
    lit = [(seen >> x) % 2 == 1 for x in range(VIEW)]
    ahead = [np.zeros(len(seen), bool) for _ in range(VIEW)]
    for order, side in ((range(VIEW - 1), 1), (range(VIEW - 1, 0, -1), -1)):
        for x in order:
            through = lit[x] & ((clear >> x) % 2 == 1)
            for cells, at in ((lit, x + side), (ahead, x + side), (ahead, x)):
                cells[at] = cells[at] | through
    powers = 1 << np.arange(VIEW)[:, None]
    return (np.stack(lit) * powers).sum(0) + 128 * (np.stack(ahead) * powers).sum(0)


def _source_table() -> np.ndarray:
    """[kind, cell] -> the cell whose content arrives there; CELLS stands for unknown."""
    x, y = np.divmod(np.arange(CELLS), SIDE)
    dx, dy = x - CENTRE, y - CENTRE
    ahead = np.where(y > 0, x * SIDE + y - 1, CELLS)
    left = (CENTRE + dy) * SIDE + CENTRE - dx
    right = (CENTRE - dy) * SIDE + CENTRE + dx
    return np.stack([left, right, np.arange(CELLS), ahead])


_SIGHT = torch.as_tensor(_sight_table())
_SOURCE = torch.as_tensor(_source_table())
_OPAQUE = torch.as_tensor(OPAQUE)
_WALKABLE = torch.as_tensor(WALKABLE)
assert (LEFT, RIGHT) == (0, 1)  # rows of _SOURCE
