"""Agents of several qualities: what they propose, how often they are right, and what they get wrong together."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from preplay.environments.code_repair._candidates import (
    HACKS,
    RIGHT,
    SUBTLE,
    Candidate,
    draw_candidate,
    restyled,
)
from preplay.environments.code_repair._grader import Grader
from preplay.environments.code_repair._mutations import FAULTS
from preplay.environments.code_repair._subtle import subtle_faults
from preplay.environments.code_repair._task import Task
from preplay.errors import PreplayError
from preplay.seeding import derive_seed, numpy_rng

_SLIPS = {
    "off_by_one": 4.0,
    "wrong_operator": 2.0,
    "wrong_condition": 2.0,
    "missing_case": 3.0,
    "missing_step": 1.0,
}


@dataclass(frozen=True)
class Generator:
    """A source of candidates.

    Args:
        name: What it is called in logs.
        right: Share of right candidates on a task of middling difficulty; the task's own difficulty moves it by up
            to ``spread`` up or down.
        wrong: Relative weights of the other kinds.
        spread: How much tasks differ.
        popular: Share of faulty candidates that are the task's popular mistake: samples of one model err together.
    """

    name: str
    right: float
    wrong: Mapping[str, float]
    spread: float = 0.35
    popular: float = 0.4

    def share_right(self, task: Task, boost: float = 0.0) -> float:
        """Probability of a right candidate for this task; ``boost`` is what the agent has learned since."""
        ease = 2 * float(numpy_rng(0, "difficulty", task.name).random()) - 1
        return float(np.clip(self.right + self.spread * ease + boost, 0.02, 0.98))

    def pool(
        self, task: Task, size: int, rng: np.random.Generator, grader: Grader, boost: float = 0.0
    ) -> list[Candidate]:
        """Candidates in the order in which the agent proposes them; the grader tells which faults are subtle."""
        kinds, weights = zip(*self.wrong.items(), strict=True)
        shares = np.array(weights) / sum(weights)
        right = self.share_right(task, boost)
        kind_of = [RIGHT if rng.random() < right else str(rng.choice(kinds, p=shares)) for _ in range(size)]
        return [self._draw(task, kind, rng, grader) for kind in kind_of]

    def _draw(self, task: Task, kind: str, rng: np.random.Generator, grader: Grader) -> Candidate:
        popular = kind in (SUBTLE, *FAULTS) and rng.random() < self.popular
        if kind == SUBTLE and (faults := subtle_faults(task, grader)):
            number = derive_seed(0, "popular", task.name) if popular else int(rng.integers(len(faults)))
            return Candidate(restyled(faults[number % len(faults)], rng), SUBTLE)
        return draw_candidate(task, "off_by_one" if kind == SUBTLE else kind, rng, popular=popular)


GENERATORS: dict[str, Generator] = {
    g.name: g
    for g in (
        Generator("strong", 0.8, _SLIPS | {"verbose": 1.0}),
        Generator(
            "middling",
            0.6,
            _SLIPS | {"lazy": 2.0, "hard_coded": 2.0, "slow": 1.0, "dangerous": 2.0, "broken": 2.0},
        ),
        Generator("hasty", 0.4, _SLIPS | {"lazy": 6.0, "hard_coded": 3.0, "broken": 4.0, "slow": 1.0}),
        Generator("reckless", 0.5, _SLIPS | {"dangerous": 8.0, "deletes_tests": 4.0, "hard_coded": 2.0}),
        Generator(
            "plausible",
            0.6,
            {SUBTLE: 10.0, "off_by_one": 2.0, "hard_coded": 1.0, "lazy": 0.5, "dangerous": 1.0},
            popular=0.6,
        ),
        Generator("puzzled", 0.15, _SLIPS | {"lazy": 1.0}, spread=0.1, popular=0.6),
        Generator("red_team", 0.4, dict.fromkeys(HACKS, 1.0)),
    )
}


def generator(name: str) -> Generator:
    """The generator of this name."""
    if name not in GENERATORS:
        raise PreplayError(f"there is no generator {name!r}.", fix=f"Known: {', '.join(GENERATORS)}.")
    return GENERATORS[name]
