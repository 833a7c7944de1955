"""The support desk as an ``Environment``: everything the pipeline needs under one name."""

from dataclasses import dataclass

import pyarrow as pa

from preplay.environments._protocol import Sessions
from preplay.environments.support_desk._config import DeskConfig
from preplay.environments.support_desk._gym import SupportDeskEnv
from preplay.environments.support_desk._policies import (
    DeskPolicy,
    behaviour_policies,
    note_takers,
    target_policies,
)
from preplay.environments.support_desk._simulator import simulate_sessions, simulate_turns
from preplay.policies import Policy

TASK = (
    "You are a support agent for home electronics. Find out what the customer's problem is, solve it with "
    "repair steps, a specialist or a refund, keep the customer patient, offer an extra only when it fits, "
    "and close the case once the problem is solved."
)


@dataclass(frozen=True)
class SupportDesk:
    """One variant of the support desk under its registered name."""

    name: str
    config: DeskConfig
    task: str = TASK

    @property
    def horizon(self) -> int:
        """Turns after which a session is cut."""
        return self.config.horizon

    @property
    def gamma(self) -> float:
        """Discount of one turn."""
        return self.config.gamma

    def gym(self) -> SupportDeskEnv:
        """One session at a time, as a Gymnasium environment with text spaces."""
        return SupportDeskEnv(self.config)

    def behaviour_policies(self) -> dict[str, DeskPolicy]:
        """The two policies that write the logs."""
        return behaviour_policies()

    def target_policies(self) -> dict[str, DeskPolicy]:
        """Policies that never wrote a log, from expert to random."""
        return target_policies() | (note_takers() if self.config.tickets > 1 else {})

    def policies(self) -> dict[str, DeskPolicy]:
        """All of them."""
        return self.behaviour_policies() | self.target_policies()

    def simulate(self, policy: Policy, sessions: int, seed: int) -> pa.Table:
        """Turns of new sessions in ``TURN_SCHEMA``; propensities are exact where known."""
        return simulate_turns(policy, sessions, seed, self.config, self.task)

    def play(self, policy: Policy, sessions: int, seed: int, gamma: float) -> Sessions:
        """Outcomes of new sessions, without keeping their turns."""
        return simulate_sessions(policy, sessions, seed, self.config, self.task, gamma)
