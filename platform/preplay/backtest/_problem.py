"""Logged sessions as a question: what was done, what came of it, and which sessions may not be learned from.

R turns, S sessions, P policies.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from preplay.actions import StructuredTurns, structure
from preplay.backtest._config import BacktestConfig
from preplay.backtest._leaks import Leaks, find_leaks
from preplay.errors import PreplayError
from preplay.seeding import numpy_rng


@dataclass(frozen=True)
class Problem:
    """Turns taken apart, and their outcomes.

    Args:
        turns: R structured turns.
        success: float64 [R] 1 where a turn solved its session.
        leave: float64 [R] 1 where a session ended by itself without success.
        fold: int64 [R] part of the environments a turn belongs to; whole environments stay together.
        group: Policies that may not vouch for each other (family, prompt variant), by policy; its own name if none.
        leaks: What in these logs would give the outcome away.
        copied: bool [R] turns that only lead up to an action a policy was asked for; they show nothing it does.
        gamma: Discount per turn of the value.
    """

    turns: StructuredTurns
    success: np.ndarray
    leave: np.ndarray
    fold: np.ndarray
    group: list[str]
    leaks: Leaks
    copied: np.ndarray
    gamma: float = 1.0

    @property
    def first(self) -> np.ndarray:
        """int64 [S] first row of every session."""
        return np.flatnonzero(self.turns.turn == 0)

    @property
    def session_policy(self) -> np.ndarray:
        """int64 [S]."""
        return self.turns.policy[self.first]

    @property
    def session_fold(self) -> np.ndarray:
        """int64 [S]."""
        return self.fold[self.first]

    @property
    def discount(self) -> np.ndarray:
        """float64 [R]."""
        return self.gamma**self.turns.turn

    @property
    def returns(self) -> np.ndarray:
        """float64 [S] discount at the turn that solved a session; 0 where none did."""
        return np.maximum.reduceat(self.success * self.discount, self.first)

    @property
    def folds(self) -> int:
        return int(self.fold.max()) + 1

    @property
    def horizon(self) -> int:
        """Most turns of a logged session."""
        return int(self.turns.turn.max()) + 1

    def value(self, policy: int, fold: int | None = None) -> float:
        """Logged mean return (with ``gamma`` 1 the share of solved sessions); NaN where there is no session."""
        use = self.session_policy == policy
        if fold is not None:
            use &= self.session_fold == fold
        return float(self.returns[use].mean()) if use.any() else np.nan

    def allies(self, policy: int) -> tuple[str, ...]:
        """The policy and those of its group."""
        return tuple(
            n for n, g in zip(self.turns.policies, self.group, strict=True) if g == self.group[policy]
        )

    def budget(self, policy: int) -> int:
        """Turns that a policy may take: its longest session; the logs' where it was only asked what it would do."""
        mine = self.turns.policy == policy
        return self.horizon if self.copied[mine].any() else int(self.turns.turn[mine].max(initial=0)) + 1

    def shown_by(self, policies: Sequence[int]) -> np.ndarray:
        """bool [R]: turns that show what these policies do."""
        return np.isin(self.turns.policy, policies) & ~self.copied

    def rows_of(self, names: tuple[str, ...]) -> np.ndarray:
        """bool [R]: turns of these policies."""
        return np.isin(np.array(self.turns.policies)[self.turns.policy], names)


def make_problem(
    turns: pa.Table,
    config: BacktestConfig | None = None,
    *,
    environment_key: str | None = None,
    groups: Mapping[str, str] | None = None,
    solved_at: float = 1.0,
    copied: np.ndarray | None = None,
) -> Problem:
    """Take turns apart and say what counts as success.

    Args:
        turns: Rows of ``TURN_SCHEMA``, sorted.
        config: ``folds`` parts of the environments (of the sessions where no environment is named) are held out in
            turn; turns beyond a declared ``horizon`` are dropped, so that all policies are judged under it.
        environment_key: Field of ``extras`` that names the environment.
        groups: Group of a policy; policies of one group are held out together.
        solved_at: A session is solved when one of its turns has at least this reward.
        copied: bool [R] turns that only lead up to an action a policy was asked for; none by default.
    """
    config = config or BacktestConfig()
    copied = np.zeros(turns.num_rows, bool) if copied is None else copied
    if config.horizon is not None:
        kept = turns["turn"].to_numpy() < config.horizon
        turns, copied = turns.filter(pa.array(kept)), copied[kept]
    reward = turns["reward"].to_numpy()
    success = (reward >= solved_at - 1e-9).astype(np.float64)
    if not success.any():
        raise PreplayError(
            f"no session of these logs reaches a reward of {solved_at:g}.",
            fix="Say with --solved-at which reward counts as solved, or join the outcomes.",
        )
    made = structure(turns, environment_key=environment_key)
    ended = turns["terminated"].to_numpy(zero_copy_only=False)
    unknown = [name for name in groups or {} if name not in made.policies]
    if unknown:
        raise PreplayError(
            f"the logs hold no policy {unknown[0]!r}.", fix=f"Logged: {', '.join(made.policies)}."
        )
    group = [(groups or {}).get(name, name) for name in made.policies]
    leaks = find_leaks(made, success, ended, turns)
    unit = made.environment if (made.environment >= 0).any() else made.question
    parts = min(config.folds, len(np.unique(unit)))
    dealt = numpy_rng(config.seed, "folds").permutation(int(unit.max()) + 2) % parts
    return Problem(made, success, ended * (1 - success), dealt[unit + 1], group, leaks, copied, config.gamma)
