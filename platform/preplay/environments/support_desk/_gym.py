"""The support desk as a Gymnasium environment: text in, text out, one customer at a time."""

import string
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Text

from preplay.environments.support_desk._agent_texts import intent_of
from preplay.environments.support_desk._config import DEFAULT, DeskConfig, Event
from preplay.environments.support_desk._customer_texts import TEXT_DRAWS, render
from preplay.environments.support_desk._dynamics import START_DRAWS, STEP_DRAWS, DeskState, start, step

_CHARACTERS = frozenset(string.printable)
MAX_REPLY = 2_000
MAX_MESSAGE = 400


class SupportDeskEnv(gymnasium.Env[str, str]):
    """One conversation with a customer; the observation is the customer's newest message only.

    ``step`` takes any text: replies that it does not know are read by keywords (``intent_of``). ``info``
    holds the intent it understood and the event, never the hidden state.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012 - the name and type are Gymnasium's

    def __init__(self, config: DeskConfig = DEFAULT):
        self.config = config
        self.observation_space = Text(MAX_MESSAGE, charset=_CHARACTERS)
        self.action_space = Text(MAX_REPLY, min_length=0, charset=_CHARACTERS)
        self.state: DeskState | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """A new customer."""
        super().reset(seed=seed)
        self.state = start(self.np_random.random((1, START_DRAWS)), self.config)
        return self._say(self.state, np.array([Event.OPENING])), {"event": "opening"}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """The customer's answer to the reply ``action``."""
        if self.state is None:
            raise gymnasium.error.ResetNeeded("call reset() before step()")
        intent = intent_of(action)
        turn = step(self.state, np.array([intent]), self.np_random.random((1, STEP_DRAWS)), self.config)
        message = self._say(turn.state, turn.event)
        terminated, truncated = bool(turn.terminated[0]), bool(turn.truncated[0])
        self.state = None if terminated or truncated else turn.state
        info = {"intent": intent.name.lower(), "event": Event(turn.event[0]).name.lower()}
        return message, float(turn.reward[0]), terminated, truncated, info

    def _say(self, state: DeskState, event: np.ndarray) -> str:
        return render(state, event, self.np_random.random((1, TEXT_DRAWS)), self.config)[0]
