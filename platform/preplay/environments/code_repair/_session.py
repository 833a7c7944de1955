"""One repair session: pools of candidates, one of them is executed a turn, until the public tests pass."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from preplay.environments.code_repair._candidates import Candidate, draw_candidate
from preplay.environments.code_repair._evidence import gather_evidence
from preplay.environments.code_repair._generator import Generator
from preplay.environments.code_repair._grader import Grade, Grader
from preplay.environments.code_repair._task import Task


@dataclass(frozen=True)
class Judgement:
    """Reward of an executed action, and whether it ends the session."""

    reward: float
    ends: bool


Judge = Callable[[Task, str, Grade], Judgement]


def judge_solved(task: Task, code: str, grade: Grade) -> Judgement:
    """1 for code that passes all tests, hidden ones too."""
    return Judgement(float(grade.solved), ends=False)


@dataclass(frozen=True)
class SessionConfig:
    """Rules of a session.

    Args:
        pool_size: Candidates a turn (K).
        max_turns: Executed actions at most.
        feedback: How much likelier a right candidate is after each failed test report.
        moves: Actions of the harness that are no code (another prompt, a look at the specification), offered in
            every pool: one earns nothing itself and makes right candidates likelier by its value from then on.
        evidence: Gather :data:`EVIDENCE` about every pool.
    """

    pool_size: int = 8
    max_turns: int = 3
    feedback: float = 0.05
    moves: Mapping[str, float] = field(default_factory=dict)
    evidence: bool = False


@dataclass(frozen=True)
class StepResult:
    """What executing an action led to; ``solved`` counts hidden tests too."""

    observation: str
    reward: float
    terminated: bool
    truncated: bool
    solved: bool


class Session:
    """A session of one task; the same seed gives the same pools after the same actions."""

    def __init__(
        self,
        task: Task,
        generator: Generator,
        grader: Grader,
        rng: np.random.Generator,
        config: SessionConfig | None = None,
        judge: Judge = judge_solved,
    ):
        self.task, self.turn = task, 0
        self.config = config or SessionConfig()
        self._generator, self._grader, self._rng, self._judge = generator, grader, rng, judge
        self._boost = 0.0
        draft = draw_candidate(task, "off_by_one", rng, popular=True).code
        self.observation = self._render(draft, grader.grade(task, draft))
        self._next()

    def step(self, action: str) -> StepResult:
        """Execute one action."""
        self.turn += 1
        if action in self.config.moves:
            return self._move(action)
        grade = self._grader.grade(self.task, action)
        judgement = self._judge(self.task, action, grade)
        self.observation = self._render(action, grade)
        ends = grade.public_ok or judgement.ends
        solved = grade.solved and not judgement.ends
        truncated = not ends and self.turn >= self.config.max_turns
        if not ends and not truncated:
            self._boost += self.config.feedback
            self._next()
        return StepResult(self.observation, judgement.reward, ends, truncated, solved)

    def _move(self, action: str) -> StepResult:
        self._boost += self.config.moves[action]
        self.observation = f"{self.observation}\n{action}"
        self._next()
        return StepResult(self.observation, 0.0, False, self.turn >= self.config.max_turns, False)

    def _next(self) -> None:
        self.pool = self._draw()
        self.evidence = (
            gather_evidence(self._grader, self.task, [c.code for c in self.pool])
            if self.config.evidence
            else None
        )

    def _draw(self) -> list[Candidate]:
        pool = self._generator.pool(self.task, self.config.pool_size, self._rng, self._grader, self._boost)
        moves = [Candidate(action, "move") for action in self.config.moves]
        for place, move in zip(self._rng.permutation(len(pool)), moves, strict=False):
            pool[place] = move
        return pool

    def _render(self, code: str, grade: Grade) -> str:
        return f"Current code:\n{code}\nTests:\n{grade.report}"
