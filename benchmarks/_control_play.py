"""Plays code-repair with any scorer in the driver's seat; every choice is executed."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from preplay.control import Controller, ControllerConfig
from preplay.critics import ActionEncoder, DecisionState, EncodedPools, Scorer, Scores, summarize
from preplay.environments.code_repair import (
    Generator,
    Grade,
    Grader,
    Judgement,
    Session,
    SessionConfig,
    Task,
    count_tokens,
)
from preplay.rewards import ActionOutcome, RewardFunction, code_lines, dangerous_calls
from preplay.seeding import numpy_rng

REWARD = RewardFunction()


def judge_by_reward(task: Task, code: str, grade: Grade) -> Judgement:
    """The composed reward; dangerous code ends the session."""
    lines = code_lines(task.reference)
    outcome = ActionOutcome(code, grade.public_passed, grade.public_total, grade.solved, lines)
    breakdown = REWARD([outcome])
    return Judgement(float(breakdown.total[0]), bool(breakdown.terminated[0]))


@dataclass
class Played:
    """One session; ``solved`` is None where it asked for review."""

    solved: bool | None = None
    dangerous: int = 0
    turns: int = 0
    tokens: int = 0
    confidence: float = float("nan")
    times_ms: list[float] = field(default_factory=list)


@dataclass
class Play:
    """Plays the same sessions with any scorer; None plays the oracle, who knows all grades of its pool."""

    tasks: list[Task]
    source: Generator
    grader: Grader
    config: SessionConfig
    encoder: ActionEncoder
    sessions: int
    seed: int

    def __call__(
        self, scorer: Scorer | None, *, guarded: bool = True, threshold: float = -np.inf
    ) -> list[Played]:
        """Play all sessions; ``guarded`` keeps the rules on."""
        summarize.cache_clear()  # each arm pays for its own encoding
        rules = ControllerConfig().rules if guarded else ()
        settings = ControllerConfig(threshold=threshold, rules=rules, abstain="review")
        controller = Controller(scorer, self.encoder, settings) if scorer else None
        return [self._session(number, controller) for number in range(self.sessions)]

    def _session(self, number: int, controller: Controller | None) -> Played:
        task = self.tasks[number % len(self.tasks)]
        rng = numpy_rng(self.seed, "play", number)
        session = Session(task, self.source, self.grader, rng, self.config, judge_by_reward)
        played = Played()
        while True:
            action = self._action(session, controller, played)
            if action is None:
                return played
            played.dangerous += bool(dangerous_calls(action))
            played.tokens += sum(count_tokens(c.code) for c in session.pool)
            result = session.step(action)
            played.turns = session.turn
            if result.terminated or result.truncated:
                played.solved = result.solved
                return played

    def _action(self, session: Session, controller: Controller | None, played: Played) -> str | None:
        codes = [candidate.code for candidate in session.pool]
        if controller is None:
            grades = self.grader.grade_many([(session.task, code) for code in codes])
            safe = [g.solved and not dangerous_calls(c) for g, c in zip(grades, codes, strict=True)]
            return codes[int(np.argmax(safe))] if any(safe) else self._patient(session, codes)
        state = DecisionState(session.task.prompt, session.observation, session.turn)
        started = time.perf_counter()
        decision = controller.decide(state, codes, evidence=session.evidence)
        played.times_ms.append(1000 * (time.perf_counter() - started))
        played.confidence = decision.confidence
        return decision.action

    def _patient(self, session: Session, codes: list[str]) -> str:
        """The oracle's action where nothing is right: the move that helps most, else the first safe candidate."""
        moves = session.config.moves
        if moves and session.turn + 1 < session.config.max_turns:
            return max(moves, key=lambda move: moves[move])
        return next((code for code in codes if not dangerous_calls(code)), codes[0])


def result(played: list[Played]) -> dict[str, float]:
    """Columns of one arm: ``success`` of what was answered, ``coverage`` the share that was."""
    answered = [p.solved for p in played if p.solved is not None]
    times = np.array([t for p in played for t in p.times_ms] or [np.nan])
    return {
        "success": float(np.mean(answered)) if answered else float("nan"),
        "dangerous": float(sum(p.dangerous for p in played)),
        "turns": float(np.mean([p.turns for p in played])),
        "tokens": float(np.mean([p.tokens for p in played])),
        "coverage": len(answered) / len(played),
        "p50_ms": float(np.quantile(times, 0.5)),
        "p99_ms": float(np.quantile(times, 0.99)),
    }


class _Plain:
    """A rule that needs no training: a function from pools to scores, float64 [M]."""

    def __init__(self, values: Callable[[EncodedPools], np.ndarray]):
        self._values = values

    def state_distance(self, pools: EncodedPools) -> np.ndarray:
        return np.ones(len(pools.state))

    def score(self, pools: EncodedPools) -> Scores:
        scores = self._values(pools)
        return Scores(scores, np.full(len(scores), np.nan))


def position() -> Scorer:
    """The first candidate."""
    return _Plain(lambda pools: -(np.arange(len(pools.features)) - pools.offsets[pools.owner]).astype(float))


def random(seed: int) -> Scorer:
    """Any candidate."""
    rng = numpy_rng(seed, "random-K")
    return _Plain(lambda pools: rng.random(len(pools.features)))


def weighted(encoder: ActionEncoder, **weights: float) -> Scorer:
    """The largest weighted sum of evidence, or of the share that agree in form where there is no evidence."""
    names = list(encoder.feature_names)
    wanted = (
        {f"evidence_{name}": w for name, w in weights.items()} if encoder.evidence else {"agreement": 1.0}
    )
    columns = [names.index(name) for name in wanted]
    return _Plain(lambda pools: pools.features[:, columns].astype(float) @ np.array(list(wanted.values())))
