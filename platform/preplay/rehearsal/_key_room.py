"""Two rooms, a key and a locked door: a small known world in which order matters.

::

    #########
    #...#...#      the agent starts in the left room, where the key lies; the goal is in the right one
    #.k.D..g#
    #...#...#
    #########
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from preplay.rehearsal._tabular import TabularWorld

MOVES = ((0, -1), (0, 1), (-1, 0), (1, 0))
"""up, down, left, right as (dx, dy); the fifth action is "use"."""
USE = 4


@dataclass(frozen=True)
class KeyRoom:
    """The rooms as a table. "use" picks the key up where it lies, and opens the door from the cell before it.

    A state is one number; :meth:`facts` tells what it stands for.

    Args:
        width: Cells of each room from left to right.
        height: Cells of a room from top to bottom.
        slip: Probability that an action does nothing.
    """

    width: int = 3
    height: int = 3
    slip: float = 0.0

    @property
    def columns(self) -> int:
        """Cells from left to right: two rooms and the wall between them."""
        return 2 * self.width + 1

    @property
    def key(self) -> tuple[int, int]:
        """Where the key lies: the bottom left corner."""
        return 0, self.height - 1

    @property
    def door(self) -> tuple[int, int]:
        """The door, in the middle of the wall."""
        return self.width, self.height // 2

    @property
    def goal(self) -> tuple[int, int]:
        """The top right corner. Arriving there pays 1 and ends the session."""
        return self.columns - 1, 0

    @property
    def states(self) -> int:
        """Number of states, reachable or not."""
        return self.columns * self.height * 4

    def state(self, x: int, y: int, *, key: bool = False, door: bool = False) -> int:
        """The number of a state."""
        return ((y * self.columns + x) * 2 + key) * 2 + door

    def facts(self, state: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """x, y (int64 [B]), has the key, the door is open (bool [B])."""
        place, key, door = state // 4, (state // 2) % 2 == 1, state % 2 == 1
        return place % self.columns, place // self.columns, key, door

    @cached_property
    def starts(self) -> np.ndarray:
        """Any cell of the left room but the key's, with nothing done yet: int64 [n]."""
        cells = [(x, y) for y in range(self.height) for x in range(self.width) if (x, y) != self.key]
        return np.array([self.state(x, y) for x, y in cells])

    @cached_property
    def world(self) -> TabularWorld:
        """The exact process."""
        shape = (self.states, 5, self.states)
        transition, arrived = np.zeros(shape), np.zeros(shape)
        everywhere = np.arange(self.states)
        for action in range(5):
            after = self._after(everywhere, action)
            transition[everywhere, action, after] += 1 - self.slip
            transition[everywhere, action, everywhere] += self.slip
        x, y, _, _ = self.facts(everywhere)
        arrived[:, :, (x == self.goal[0]) & (y == self.goal[1])] = 1
        return TabularWorld.exact(transition, arrived, arrived)

    def describe(self, state: np.ndarray) -> list[str]:
        """What stands where, in words."""
        return [self._sentence(*facts) for facts in zip(*self.facts(state), strict=True)]

    def _after(self, state: np.ndarray, action: int) -> np.ndarray:
        x, y, key, door = self.facts(state)
        if action == USE:
            before_door = (x == self.door[0] - 1) & (y == self.door[1])
            key, door = key | ((x == self.key[0]) & (y == self.key[1])), door | (before_door & key)
            return self._number(x, y, key, door)
        to_x, to_y = x + MOVES[action][0], y + MOVES[action][1]
        inside = (to_x >= 0) & (to_x < self.columns) & (to_y >= 0) & (to_y < self.height)
        wall = (to_x == self.width) & ~((to_y == self.door[1]) & door)
        free = inside & ~wall
        return self._number(np.where(free, to_x, x), np.where(free, to_y, y), key, door)

    def _number(self, x: np.ndarray, y: np.ndarray, key: np.ndarray, door: np.ndarray) -> np.ndarray:
        return ((y * self.columns + x) * 2 + key) * 2 + door

    def _sentence(self, x: int, y: int, key: bool, door: bool) -> str:
        room = "left room" if x < self.width else "doorway" if x == self.width else "right room"
        holds = "You hold the key." if key else "The key is on the floor."
        goal = " You are at the goal." if (x, y) == self.goal else ""
        return f"You are in the {room}. {holds} The door is {'open' if door else 'locked'}.{goal}"
