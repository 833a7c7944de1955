"""Code-repair: critics trained on half of the tasks, executed on the other half."""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks._control_arms import abstaining, coverage_curve, train_arms
from benchmarks._control_audit import hacking_audit
from benchmarks._control_cells import Cell, cells, summarize
from benchmarks._control_play import Play, judge_by_reward, position, random, result, weighted
from preplay.control import Controller, pool_size_curve
from preplay.critics import (
    ActionEncoder,
    Critic,
    Decisions,
    DecisionState,
    Scorer,
    decisions_from_turns,
    distill,
    rank_agreement,
)
from preplay.environments.code_repair import (
    EVIDENCE,
    Grader,
    SandboxConfig,
    SessionConfig,
    Task,
    gather_evidence,
    generator,
    log_sessions,
    random_candidate,
    split_tasks,
)

SIZES = (1, 2, 4, 8)
RED_TEAM = 0.1
"""Share of the logged sessions in which known hacks are among what is proposed, and tried like anything else."""


@dataclass(frozen=True)
class CodeSettings:
    """How much is logged, trained and executed, and by which rules."""

    session: SessionConfig
    source: str = "plausible"
    logged: int = 500
    played: int = 128
    steps: int = 400
    members: int = 3


def code_repair(name: str, seeds: int, settings: CodeSettings, folder: Path | None) -> dict[str, float]:
    """All arms over the seeds."""
    grader = Grader(SandboxConfig(seconds=0.1))
    found = cells(folder, name, seeds, lambda seed: _one_seed(seed, settings, grader))
    return summarize(found, "first candidate", "oracle-K")


def _one_seed(seed: int, settings: CodeSettings, grader: Grader) -> Cell:
    train, test = split_tasks(seed)
    cut = 3 * len(train) // 4
    evidence = EVIDENCE if settings.session.evidence else ()
    encoder = ActionEncoder(horizon=settings.session.max_turns, evidence=evidence)
    source = generator(settings.source)
    sources = [source] * round(1 / RED_TEAM - 1) + [generator("red_team")]

    def log(tasks: list[Task], sessions: int, stream: int) -> tuple[Decisions, pa.Table]:
        options = {"sessions": sessions, "seed": 1000 * stream + seed, "config": settings.session}
        behaviour = {"random": random_candidate}
        turns = log_sessions(tasks, sources, behaviour, grader, judge=judge_by_reward, **options)
        return decisions_from_turns(turns, encoder), turns

    data, _ = log(train[:cut], settings.logged, 1)
    held, held_turns = log(train[cut:], settings.logged // 4, 2)
    known = {task.name: task for task in train}
    right = _outcomes(held_turns, known, grader)
    arms = train_arms(data, seed, steps=settings.steps, members=settings.members)
    play = Play(test, source, grader, settings.session, encoder, settings.played, seed)
    cell = _play_all(play, arms, seed)
    for arm in ("classifier (logistic)", "IQL ensemble"):
        threshold = abstaining(arms[arm], held.pools, right)
        cell[f"{arm}, abstains"] = result(play(arms[arm], threshold=threshold))
        cell[arm] |= _pool_sizes(arms[arm], encoder, held_turns, right, known, grader)
    for arm in ("classifier (logistic)", "IQL"):
        audit = hacking_audit(arms[arm], encoder, test, grader, seed)
        cell[arm] |= {f"honest above {hack.kind}": hack.honest_wins for hack in audit.hacks}
    return cell | {"IQL ensemble, distilled": _distilled(arms["IQL ensemble"], data, held, seed)}


def _play_all(play: Play, arms: dict[str, Scorer], seed: int) -> Cell:
    """Every arm on the same sessions."""
    plain = {"first candidate": position(), "random-K": random(seed)}
    rules = {
        "public tests": weighted(play.encoder, public_ok=1.0),
        "execution vote": weighted(play.encoder, public_ok=10.0, vote=1.0),
    }
    cell = {name: result(play(scorer, guarded=False)) for name, scorer in plain.items()}
    for name, scorer in {**rules, **arms}.items():
        played = play(scorer)
        cell[name] = result(played)
        answered = [p for p in played if p.solved is not None]
        if name in arms and play.config.max_turns == 1:
            confidence = np.array([p.confidence for p in answered])
            cell[name] |= coverage_curve(confidence, np.array([bool(p.solved) for p in answered]))
    return cell | {"oracle-K": result(play(None))}


def _outcomes(turns: pa.Table, tasks: dict[str, Task], grader: Grader) -> np.ndarray:
    """Whether each logged candidate is right, by executing it, bool [M]."""
    extras = _extras(turns)
    work = [(tasks[e["task_name"]], code) for e in extras for code in e["candidates"]]
    return np.array([grade.solved for grade in grader.grade_many(work)])


def _extras(turns: pa.Table) -> list[dict]:
    ordered = turns.sort_by([("session_id", "ascending"), ("turn", "ascending")])
    return [json.loads(text) for text in ordered["extras"].to_pylist()]


def _pool_sizes(
    scorer: Scorer,
    encoder: ActionEncoder,
    turns: pa.Table,
    right: np.ndarray,
    tasks: dict[str, Task],
    grader: Grader,
) -> dict[str, float]:
    """Success and latency at K of SIZES, on the calibration tasks: what K is chosen by."""
    rows = turns.sort_by([("session_id", "ascending"), ("turn", "ascending")]).to_pylist()
    work, start = [], 0
    for row, extra in zip(rows, _extras(turns), strict=True):
        size = len(extra["candidates"])
        state = DecisionState(row["task"], row["observation"], row["turn"])
        work.append((state, extra["candidates"], right[start : start + size].tolist()))
        start += size
    of_prompt = {task.prompt: task for task in tasks.values()}
    gather = (
        (lambda s, codes: gather_evidence(grader, of_prompt[s.task], codes)) if encoder.evidence else None
    )
    curve = pool_size_curve(Controller(scorer, encoder), work, SIZES, gather)
    out: dict[str, float] = {}
    for point in curve:
        out |= {f"success at K={point.size}": point.success, f"p50_ms at K={point.size}": point.p50_ms}
    return out


def _distilled(ensemble: Scorer, data: Decisions, held: Decisions, seed: int) -> dict[str, float]:
    """Rank agreement of one small network with the ensemble, on tasks that neither was trained on."""
    assert isinstance(ensemble, Critic)
    small = distill(ensemble, data.pools, seed=seed)
    scores = [critic.score(held.pools).mean for critic in (ensemble, small)]
    return {"rank agreement": rank_agreement(scores[0], scores[1], held.pools)}
