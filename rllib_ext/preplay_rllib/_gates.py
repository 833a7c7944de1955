"""When may the policy learn from dreams? A poor or an exploited model switches rehearsal off by itself."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from preplay_rllib._replay import Columns
from preplay_rllib._settings import RehearsalSettings

_DECAY = 0.5
_RECENT_EPISODES = 50


@dataclass(frozen=True)
class Verdict:
    """``open`` with an empty ``reason``, or the reason for staying closed."""

    reason: str

    @property
    def open(self) -> bool:
        return not self.reason


class Gates:
    """Running figures on the newest real rollouts, and the verdict that they give.

    The gap compares imagined with real outcomes from the same states: a policy that exploits the model succeeds in it
    more often (or earns more in it) than in the world, however well single steps are predicted.
    """

    def __init__(self, settings: RehearsalSettings):
        self.settings = settings
        self.error: dict[str, float] = {}
        self.gap: float | None = None
        self.successes = 0
        self._recent: list[bool] = []

    @property
    def success_rate(self) -> float:
        """Of the newest real episodes."""
        return sum(self._recent) / len(self._recent) if self._recent else 0.0

    def observe_ends(self, successes: int, episodes: int) -> None:
        """How many real episodes of the newest rollout have ended, and how many of them in success."""
        self.successes += successes
        ends = [True] * successes + [False] * (episodes - successes)
        self._recent = (self._recent + ends)[-_RECENT_EPISODES:]

    def observe_error(self, error: dict[str, float]) -> None:
        """One-step figures of rows that were not trained on yet."""
        self.error = error

    def observe_gap(self, imagined: float, real: float, unit: float = 1.0) -> None:
        """Mean worth of a stretch in imagination and in the world, and what makes a gap of 1."""
        gap = (imagined - real) / unit
        self.gap = gap if self.gap is None else _DECAY * self.gap + (1 - _DECAY) * gap

    def verdict(self, real_steps: int) -> Verdict:
        """Whether rehearsal may run after this many real steps."""
        s = self.settings
        if real_steps < s.warmup_steps:
            return Verdict("warm-up")
        if s.needs_success and not self.successes:
            return Verdict("no success yet")
        if not s.gates:
            return Verdict("")
        if self.error.get("exact", 1.0) < s.min_exact_match or self.error.get("error", 0.0) > s.max_error:
            return Verdict("poor model")
        if self.gap is not None and self.gap > s.max_gap:
            return Verdict("exploited model")
        return Verdict("")

    def metrics(self) -> dict[str, float]:
        """Figures to log; the gap is absent until it is known."""
        return {f"model_{k}": v for k, v in self.error.items()} | (
            {} if self.gap is None else {"gap": self.gap}
        )

    def get_state(self) -> dict[str, Any]:
        figures = {"error": dict(self.error), "gap": self.gap}
        return figures | {"successes": self.successes, "recent": list(self._recent)}

    def set_state(self, state: dict[str, Any]) -> None:
        self.error, self.gap, self.successes = state["error"], state["gap"], state["successes"]
        self._recent = list(state["recent"])


@dataclass(frozen=True)
class Pairs:
    """Newest real rows int64 [K] whose next ``horizon`` steps are known, and what these were worth on average."""

    rows: np.ndarray
    real_worth: float


def known_outcomes(rows: Columns, horizon: int) -> Pairs:
    """Rows of one rollout that were followed for ``horizon`` steps, or to the end of their episode."""
    order = np.argsort(rows["episode"], kind="stable")  # chunks of several environments may come in turns
    episode, ended = rows["episode"][order], rows["terminated"][order]
    index = np.arange(len(episode))
    last = np.searchsorted(episode, episode, side="right") - 1
    known = (last - index >= horizon - 1) | ended[last]
    so_far = np.concatenate([[0.0], np.cumsum(rows["worth"][order], dtype=np.float64)])
    within = so_far[np.minimum(index + horizon, last + 1)] - so_far[index]
    return Pairs(order[known], float(within[known].mean()) if known.any() else 0.0)
