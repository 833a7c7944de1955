"""Two agents who have to pass each other through one gap, and rehearsal with a predicted other agent.

::

    #########
    #...#...#     each agent wants to the other side; only one fits into the gap
    #e.....o#     e: us, o: the other one
    #...#...#
    #########

A state is int64 [B, 4]: our x, y and the other's x, y.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from gymnasium.spaces import Box, Discrete
from scipy.special import ndtr

from preplay.rehearsal._world import ImaginedStep

STEPS = np.array([(0, -1), (0, 1), (-1, 0), (1, 0), (0, 0)])
"""up, down, left, right, wait as (dx, dy)."""
WAIT = 4


@dataclass(frozen=True)
class CrossingRules:
    """Both move at once. Where they would enter the same cell or change places, neither moves.

    Args:
        width: Cells from left to right; the wall is in the middle column.
        height: Cells from top to bottom; the gap is in the middle row.
        step_cost, bump_cost: Paid by us per step, and per collision.
    """

    width: int = 7
    height: int = 3
    step_cost: float = 0.02
    bump_cost: float = 0.2

    @property
    def goal(self) -> tuple[int, int]:
        """Ours: the right end of the middle row. Arriving pays 1 and ends the session."""
        return self.width - 1, self.height // 2

    @property
    def cells(self) -> int:
        """Number of cells, walls included."""
        return self.width * self.height

    @cached_property
    def starts(self) -> np.ndarray:
        """We anywhere in the left part, the other anywhere in the right part: int64 [n, 4]."""
        middle, rows = self.width // 2, range(self.height)
        ours = [(x, y) for x in range(middle) for y in rows]
        theirs = [(x, y) for x in range(middle + 1, self.width) for y in rows]
        return np.array([(*a, *b) for a in ours for b in theirs if a != b])

    def free(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Whether a cell can be stood on."""
        inside = (x >= 0) & (x < self.width) & (y >= 0) & (y < self.height)
        return inside & ((x != self.width // 2) | (y == self.height // 2))

    def move(self, state: np.ndarray, ours: np.ndarray, theirs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """States after both moves, int64 [B, 4], and whether they collided, bool [B]."""
        us, them = state[:, :2], state[:, 2:]
        our_cell, their_cell = self._target(us, ours), self._target(them, theirs)
        same = (our_cell == their_cell).all(1)
        swap = (our_cell == them).all(1) & (their_cell == us).all(1) & ~(our_cell == us).all(1)
        bump = (same | swap)[:, None]
        return np.concatenate([np.where(bump, us, our_cell), np.where(bump, them, their_cell)], 1), bump[:, 0]

    def _target(self, place: np.ndarray, action: np.ndarray) -> np.ndarray:
        to = place + STEPS[action]
        return np.where(self.free(to[:, 0], to[:, 1])[:, None], to, place)

    def number(self, state: np.ndarray) -> np.ndarray:
        """Joint states as numbers below ``cells ** 2``, int64 [B]."""
        return self.cell(state[:, :2]) * self.cells + self.cell(state[:, 2:])

    def cell(self, place: np.ndarray) -> np.ndarray:
        """Places [B, 2] as numbers below ``cells``."""
        return place[:, 1] * self.width + place[:, 0]

    def towards(self, place: np.ndarray, *, right: bool) -> np.ndarray:
        """The action on a shortest way to the right (or left) end, as if nobody else were there: int64 [B]."""
        x, y = place.T
        middle, row = self.width // 2, self.height // 2
        ahead = 3 if right else 2
        before = x < middle if right else x > middle
        at_wall = x == (middle - 1 if right else middle + 1)
        to_row = np.where(y < row, 1, 0)
        end = self.width - 1 if right else 0
        off = (y != row) & (at_wall | (x == end) | ~before)
        return np.where((x == end) & (y == row), WAIT, np.where(off, to_row, ahead))


@dataclass(frozen=True)
class TwoAgentWorld:
    """The crossing with the other agent drawn from probabilities per joint state.

    With the true habit it is the real world; with predicted ones it is what we rehearse in.

    Args:
        rules: What moves do.
        other: float64 [cells ** 2, 5] probability of the other's actions.
    """

    rules: CrossingRules
    other: np.ndarray

    def __post_init__(self):
        if self.other.shape != (self.rules.cells**2, len(STEPS)) or not np.allclose(self.other.sum(1), 1):
            raise ValueError(
                f"probabilities of the other agent have shape {self.other.shape} or do not sum to 1"
            )

    @property
    def action_space(self) -> Discrete:
        """up, down, left, right, wait."""
        return Discrete(len(STEPS))

    @property
    def observation_space(self) -> Box:
        """Both places, as shares of the grid."""
        return Box(0, 1, (4,), np.float32)

    @property
    def noise_dim(self) -> int:
        """One number draws the other's action."""
        return 1

    def observe(self, state: np.ndarray) -> np.ndarray:
        """float32 [B, 4]."""
        size = np.array([self.rules.width - 1, self.rules.height - 1] * 2)
        return (state / size).astype(np.float32)

    def step(self, state: np.ndarray, action: np.ndarray, noise: np.ndarray) -> ImaginedStep:
        """Draw what the other does, and move both."""
        cumulative = self.other[self.rules.number(state)].cumsum(1)[:, :-1]
        theirs = (ndtr(noise[:, :1]) >= cumulative).sum(1)
        after, bump = self.rules.move(state, action, theirs)
        arrived = (after[:, :2] == self.rules.goal).all(1)
        reward = arrived - self.rules.step_cost - self.rules.bump_cost * bump
        rows = np.zeros(len(state))
        return ImaginedStep(after, reward, arrived.astype(np.float64), rows.astype(bool), rows)


def habit(rules: CrossingRules, *, haste: float, polite: bool) -> np.ndarray:
    """The true other agent, float64 [cells ** 2, 5]: with probability ``haste`` on its way, else it waits.

    A polite one waits aside for as long as we are nearer to the gap than it is.
    """
    numbers = np.arange(rules.cells**2)
    us, them = (np.stack([c % rules.width, c // rules.width], 1) for c in divmod(numbers, rules.cells))
    gap = np.array([rules.width // 2, rules.height // 2])
    nearer = np.abs(us - gap).sum(1) < np.abs(them - gap).sum(1)
    waits = polite & nearer & (us[:, 0] <= gap[0])
    way = np.eye(len(STEPS))[np.where(waits, WAIT, rules.towards(them, right=False))]
    return haste * way + (1 - haste) * np.eye(len(STEPS))[WAIT]


def predicted_other(
    rules: CrossingRules, state: np.ndarray, action: np.ndarray, *, strength: float = 2.0
) -> np.ndarray:
    """The other agent learned from N observed actions: float64 [cells ** 2, 5].

    Frequencies per joint state, smoothed by ``strength`` observations of those per cell of the other, and these by
    as many of a uniform choice.

    Args:
        state: int64 [N, 4]; action: int64 [N] what the other did there.
    """
    actions = len(STEPS)
    joint, cell = rules.number(state), rules.cell(state[:, 2:])
    per_joint = np.bincount(joint * actions + action, minlength=rules.cells**2 * actions).reshape(-1, actions)
    per_cell = np.bincount(cell * actions + action, minlength=rules.cells * actions).reshape(-1, actions)
    coarse = _smooth(per_cell, np.full((rules.cells, actions), 1 / actions), strength)
    return _smooth(per_joint, np.tile(coarse, (rules.cells, 1)), strength)


def _smooth(count: np.ndarray, prior: np.ndarray, strength: float) -> np.ndarray:
    return (count + strength * prior) / (count.sum(1, keepdims=True) + strength)
