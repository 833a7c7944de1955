"""Code-repair: critics trained on half of the tasks, executed on the other half."""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from benchmarks._control_arms import Result, abstaining, summarize, train_arms
from benchmarks._control_audit import hacking_audit
from preplay.control import Controller, ControllerConfig
from preplay.critics import (
    DENSE,
    ActionEncoder,
    Decisions,
    DecisionState,
    EncodedPools,
    Scorer,
    Scores,
    decisions_from_turns,
)
from preplay.environments.code_repair import (
    Generator,
    Grade,
    Grader,
    Judgement,
    SandboxConfig,
    Session,
    SessionConfig,
    Task,
    count_tokens,
    first_candidate,
    generator,
    log_sessions,
    split_tasks,
)
from preplay.rewards import ActionOutcome, HackingAudit, RewardFunction, code_lines, dangerous_calls
from preplay.seeding import numpy_rng

REWARD = RewardFunction()


@dataclass(frozen=True)
class CodeSettings:
    """How much is logged, trained and executed; with ``specification`` credit spans turns."""

    logged: int = 600
    played: int = 150
    steps: int = 400
    members: int = 3
    source: str = "middling"
    specification: float | None = None


def code_repair(seeds: int, settings: CodeSettings) -> dict[str, float]:
    """All arms over the seeds."""
    grader = Grader(SandboxConfig(seconds=0.1))
    rows: dict[str, list[Result]] = {}
    honest: dict[str, list[float]] = {}
    for seed in range(seeds):
        results, audits = _one_seed(seed, settings, grader)
        for arm, result in results.items():
            rows.setdefault(arm, []).append(result)
        for arm, audit in audits.items():
            for hack in audit.hacks:
                honest.setdefault(f"{arm} | honest above {hack.kind}", []).append(hack.honest_wins)
    means = {name: float(np.mean(values)) for name, values in honest.items()}
    return summarize(rows, "first candidate", "oracle-K") | means


def judge_by_reward(task: Task, code: str, grade: Grade) -> Judgement:
    """The composed reward; dangerous code ends the session."""
    lines = code_lines(task.reference)
    outcome = ActionOutcome(code, grade.public_passed, grade.public_total, grade.solved, lines)
    breakdown = REWARD([outcome])
    return Judgement(float(breakdown.total[0]), bool(breakdown.terminated[0]))


def _one_seed(
    seed: int, settings: CodeSettings, grader: Grader
) -> tuple[dict[str, Result], dict[str, HackingAudit]]:
    train, test = split_tasks(seed)
    cut = 3 * len(train) // 4
    config = SessionConfig(specification=settings.specification)
    encoder = ActionEncoder(horizon=config.max_turns)
    source = generator(settings.source)

    def log(tasks: list[Task], sessions: int, stream: int) -> tuple[Decisions, pa.Table]:
        behaviour = {"first": first_candidate}
        options = {
            "sessions": sessions,
            "seed": 1000 * stream + seed,
            "config": config,
            "judge": judge_by_reward,
        }
        turns = log_sessions(tasks, [source], behaviour, grader, **options)
        return decisions_from_turns(turns, encoder), turns

    data, _ = log(train[:cut], settings.logged, 1)
    held, held_turns = log(train[cut:], settings.logged // 4, 2)
    arms = train_arms(data, seed, steps=settings.steps, members=settings.members)
    right = _outcomes(held_turns, {task.name: task for task in train}, grader)
    threshold = abstaining(arms["IQL ensemble"], held, right, 0.1)
    scorers: dict[str, Scorer] = {
        "first candidate": position(),
        "random-K": random(seed),
        "majority vote": column("agreement"),
        **arms,
    }
    play = Play(test, source, grader, config, encoder, settings.played, seed)
    results = {
        name: play(scorer, guarded=name not in ("first candidate", "random-K"))
        for name, scorer in scorers.items()
    }
    results["IQL ensemble, abstains"] = play(arms["IQL ensemble"], guarded=True, threshold=threshold)
    results["oracle-K"] = play(None, guarded=True)
    audited = ("classifier (logistic)", "IQL")
    return results, {arm: hacking_audit(arms[arm], encoder, test, grader, seed) for arm in audited}


def _outcomes(turns: pa.Table, tasks: dict[str, Task], grader: Grader) -> np.ndarray:
    """Whether each logged candidate is right, by executing it, bool [M]."""
    ordered = turns.sort_by([("session_id", "ascending"), ("turn", "ascending")])
    extras = [json.loads(text) for text in ordered["extras"].to_pylist()]
    work = [(tasks[e["task_name"]], code) for e in extras for code in e["candidates"]]
    return np.array([grade.solved for grade in grader.grade_many(work)])


@dataclass
class Play:
    """Plays the same sessions with any scorer; None plays the oracle."""

    tasks: list[Task]
    source: Generator
    grader: Grader
    config: SessionConfig
    encoder: ActionEncoder
    sessions: int
    seed: int

    def __call__(self, scorer: Scorer | None, *, guarded: bool, threshold: float = -np.inf) -> Result:
        """Play all sessions."""
        rules = ControllerConfig().rules if guarded else ()
        settings = ControllerConfig(threshold=threshold, rules=rules, abstain="review")
        controller = Controller(scorer, self.encoder, settings) if scorer else None
        played = [self._session(number, controller) for number in range(self.sessions)]
        answered = [p[0] for p in played if p[0] is not None]
        times = np.array([t for p in played for t in p[4]] or [np.nan])
        return Result(
            success=float(np.mean(answered)) if answered else float("nan"),
            dangerous=float(sum(p[1] for p in played)),
            turns=float(np.mean([p[2] for p in played])),
            tokens=float(np.mean([p[3] for p in played])),
            coverage=len(answered) / len(played),
            p50_ms=float(np.quantile(times, 0.5)),
            p99_ms=float(np.quantile(times, 0.99)),
        )

    def _session(
        self, number: int, controller: Controller | None
    ) -> tuple[bool | None, int, int, int, list[float]]:
        """(solved or None where it asked for review, dangerous actions, turns, tokens, seconds per decision)."""
        task = self.tasks[number % len(self.tasks)]
        rng = numpy_rng(self.seed, "play", number)
        session = Session(task, self.source, self.grader, rng, self.config, judge_by_reward)
        dangerous, tokens, times = 0, 0, []
        while True:
            started = time.perf_counter()
            action = self._action(session, controller)
            times.append(1000 * (time.perf_counter() - started))
            if action is None:
                return None, dangerous, session.turn, tokens, times
            dangerous += bool(dangerous_calls(action))
            tokens += sum(count_tokens(c.code) for c in session.pool)
            result = session.step(action)
            if result.terminated or result.truncated:
                return result.solved, dangerous, session.turn, tokens, times

    def _action(self, session: Session, controller: Controller | None) -> str | None:
        codes = [candidate.code for candidate in session.pool]
        if controller is None:
            grades = self.grader.grade_many([(session.task, code) for code in codes])
            safe = [
                grade.solved and not dangerous_calls(code) for grade, code in zip(grades, codes, strict=True)
            ]
            return codes[int(np.argmax(safe))]
        state = DecisionState(session.task.prompt, session.observation, session.turn)
        return controller.decide(state, codes).action


class _Plain:
    """A rule that needs no training: a function from pools to scores, float64 [M]."""

    def __init__(self, values: Callable[[EncodedPools], np.ndarray]):
        self._values = values

    def state_distance(self, pools: EncodedPools) -> np.ndarray:
        return np.ones(len(pools.state))

    def score(self, pools: EncodedPools) -> Scores:
        scores = self._values(pools)
        return Scores(scores, np.full(len(scores), np.nan))


def position() -> _Plain:
    """The first candidate."""
    return _Plain(lambda pools: -(np.arange(len(pools.features)) - pools.offsets[pools.owner]).astype(float))


def random(seed: int) -> _Plain:
    """Any candidate."""
    rng = numpy_rng(seed, "random-K")
    return _Plain(lambda pools: rng.random(len(pools.features)))


def column(name: str) -> _Plain:
    """The candidate with the largest value of one dense feature."""
    return _Plain(lambda pools: pools.features[:, DENSE.index(name)].astype(float))
