"""How often intervals hold the truth, and how often the verdict is right, over many simulated logs.

Each row of the table is one problem at one log size: logs are drawn anew in each replication, every estimator is
evaluated, and its intervals are compared with the known value *where the verdict is ``estimate``*.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks._common import bench_main
from benchmarks._desk_pool import DeskPool, desk_pool, joined, mixed
from benchmarks._known_problems import graph, graph_value, model_win, stop_go
from preplay.environments import get_environment
from preplay.environments.support_desk import DeskPolicy, Intent
from preplay.estimators import (
    SessionBatch,
    TermsEstimator,
    empirical_likelihood,
    evaluate_estimator,
    get_estimator,
    logger_weights,
    student_t,
    weigh_loggers,
    weighted_bounds,
)

ESTIMATORS = ("pdis", "wis", "wpdis", "wdr")
METHODS = ("bootstrap", "student-t", "empirical-likelihood")
TWO_AGENTS = {
    "like one of them": "supported",
    "like the other": "supported",
    "between them": "supported",
    "far from both": "far",
}
"""Targets of logs that two agents wrote, and how well the logs cover them."""
Draw = Callable[[int, np.random.Generator], SessionBatch]


@dataclass(frozen=True)
class Problem:
    """Logs with a known value.

    Args:
        name: What is varied.
        draw: n sessions from a generator.
        truth: The target's value.
        returns: Declared range of a session's return.
        kind: ``supported`` (the logs cover the target well), ``far`` (they cover it thinly), ``no support``, or
            ``unweighed`` (sessions of two agents that are not weighed by who logged them).
    """

    name: str
    draw: Draw
    truth: float
    returns: tuple[float, float]
    kind: str


@dataclass
class Tally:
    """Counts over the replications of one problem, size and estimator."""

    verdicts: dict[str, int] = field(
        default_factory=lambda: {"estimate": 0, "bounds only": 0, "not identified": 0}
    )
    hits: dict[str, int] = field(default_factory=lambda: dict.fromkeys((*METHODS, "bounds"), 0))
    widths: dict[str, float] = field(default_factory=lambda: dict.fromkeys((*METHODS, "bounds"), 0.0))

    @property
    def replications(self) -> int:
        return sum(self.verdicts.values())

    def share(self, kind: str) -> float:
        return self.verdicts[kind] / self.replications

    def coverage(self, method: str) -> float:
        """Share of intervals that hold the truth: of all for the bounds, else where the verdict is estimate."""
        count = self.replications if method == "bounds" else self.verdicts["estimate"]
        return self.hits[method] / count if count else float("nan")

    def width(self, method: str) -> float:
        count = self.replications if method == "bounds" else self.verdicts["estimate"]
        return self.widths[method] / count if count else float("nan")


def abstract_problems() -> list[Problem]:
    """Problems with a closed form: targets near, far and beyond the logs."""
    made = [_model_win(4, t, kind) for t, kind in ((0.5, "supported"), (0.27, "supported"))]
    made += [_model_win(20, t, kind) for t, kind in ((0.6, "supported"), (0.27, "far"))]
    for p_target, p_log, kind in ((0.7, 0.6, "supported"), (0.8, 0.6, "supported"), (0.9, 0.3, "far")):
        made.append(_graph(p_target, p_log, kind))
    return [*made, _never_logged(0.5), _never_logged(0.9), _only_stops()]


def desk_problems(pool: int) -> list[Problem]:
    """The same in the text environment; ``pool`` sessions are logged once and drawn from."""
    shares = ((0.15, "supported"), (0.35, "supported"), (1.0, "far"))
    one = [*(_desk(share, kind, pool) for share, kind in shares), _desk_without(pool)]
    two = [problem for name, kind in TWO_AGENTS.items() for problem in _two_agents(name, kind, pool)]
    return one + two


def simulate(problem: Problem, n: int, replications: int, seed: int = 0) -> dict[str, Tally]:
    """Tallies per estimator over logs of ``n`` sessions."""
    rng, tallies = np.random.default_rng([seed, n]), {name: Tally() for name in ESTIMATORS}
    for replication in range(replications):
        batch = problem.draw(n, rng)
        bounds = _bounds(batch, problem)
        for name, tally in tallies.items():
            _judge(name, batch, problem, tally, replication)
            tally.hits["bounds"] += bounds.contains(problem.truth)
            tally.widths["bounds"] += bounds.width
    return tallies


def _judge(name: str, batch: SessionBatch, problem: Problem, tally: Tally, seed: int) -> None:
    """The verdict needs few resamples; the intervals are made only where they count."""
    estimator = get_estimator(name)
    verdict = evaluate_estimator(estimator, batch, resamples=40, seed=seed).verdict
    tally.verdicts[verdict] += 1
    if verdict != "estimate":
        return
    first = evaluate_estimator(estimator, batch, resamples=400, seed=seed)
    assert first.raw_value is not None
    values = first.raw_value + estimator.influence(batch)
    made = {"bootstrap": first.interval, "student-t": student_t(values)}
    made["empirical-likelihood"] = empirical_likelihood(values)
    for method, interval in made.items():
        tally.hits[method] += interval.contains(problem.truth)
        tally.widths[method] += interval.width


def _bounds(batch: SessionBatch, problem: Problem):
    estimator = get_estimator("wis")
    assert isinstance(estimator, TermsEstimator)
    terms = estimator.terms(batch)
    return weighted_bounds(np.exp(terms.log_weight), terms.x, problem.returns)


def _model_win(horizon: int, target: float, kind: str) -> Problem:
    """Value per visit of s1: .2·(1 − 2·target), from +1 w.p. .4 after a1 and .6 after a2."""
    visits = horizon // 2
    truth = visits * 0.2 * (1 - 2 * target)
    return Problem(
        f"ModelWin H={horizon} pi={target}",
        lambda n, rng: model_win(n, rng, horizon, target),
        truth,
        (-visits, visits),
        kind,
    )


def _graph(p_target: float, p_log: float, kind: str) -> Problem:
    truth = graph_value(steps=4, slip=True, sparse=False, p=p_target)
    limit = sum(0.98**t for t in range(4))
    return Problem(
        f"Graph T=4 {p_log}->{p_target}",
        lambda n, rng: _with_model(graph(n, rng, slip=True, p_log=p_log, p_target=p_target)),
        truth,
        (-limit, limit),
        kind,
    )


def _never_logged(share: float) -> Problem:
    """Graph whose target takes a third, better action (+1 always) with probability ``share``; never logged."""
    seen = graph_value(steps=4, slip=False, sparse=False, p=0.7) * (1 - share)
    unseen = share * sum(0.98**t for t in range(4))

    def draw(n: int, rng: np.random.Generator) -> SessionBatch:
        batch = graph(n, rng, p_log=0.6, p_target=0.7)
        assert batch.log_ratio is not None
        ratio = batch.log_ratio + np.log(1 - share)
        return _with_model(SessionBatch(batch.offsets, batch.reward, batch.gamma, log_ratio=ratio))

    limit = sum(0.98**t for t in range(4))
    return Problem(f"Graph, {share:.0%} never logged", draw, seen + unseen, (-limit, limit), "no support")


def _only_stops() -> Problem:
    """Stop/go whose log never goes."""
    return Problem(
        "Stop/go, log only stops",
        lambda n, rng: stop_go(n, rng, p_log=1e-12),
        0.9,
        (0, 1),
        "no support",
    )


def _desk(share: float, kind: str, pool: int) -> Problem:
    """Support desk: a fraction ``share`` of the turns is answered by the expert instead of the apprentice."""
    return _from_pool(f"Support desk {share:.0%} expert", _desk_pool(share, pool), kind)


def _desk_without(pool: int) -> Problem:
    """Support desk logged by an apprentice who never uses the expert's remedies."""
    return _from_pool("Support desk, remedies never logged", _desk_pool_without(pool), "no support")


def _two_agents(target: str, kind: str, pool: int) -> list[Problem]:
    """Half of the sessions by either behaviour policy: weighed by how near it is to the target, or all alike."""
    loggers = list(get_environment("support_desk").behaviour_policies().values())
    policy = _near(target, *loggers)  # pyright: ignore[reportArgumentType]
    pools = [desk_pool(logger, policy, 4 * pool, seed=3 + 10 * i) for i, logger in enumerate(loggers)]  # pyright: ignore[reportArgumentType]
    batch, whose = joined(pools)
    names = np.array([logger.name for logger in loggers])[whose]
    truth = float(np.mean([pool.truth for pool in pools]))

    def draw(n: int, rng: np.random.Generator, *, weighed: bool) -> SessionBatch:
        rows = np.concatenate([rng.choice(np.flatnonzero(whose == i), n // 2, replace=False) for i in (0, 1)])
        drawn = batch.select(rows)
        if weighed:
            drawn = weigh_loggers(drawn, names[rows], logger_weights(drawn, names[rows]))
        return _with_model(drawn)

    ways = {f"Two agents, {target}": (True, kind), f"{target}, all alike": (False, "unweighed")}
    return [
        Problem(name, partial(draw, weighed=weighed), truth, (-1.5, 1.5), kind)
        for name, (weighed, kind) in ways.items()
    ]


def _near(target: str, apprentice: DeskPolicy, by_the_book: DeskPolicy) -> DeskPolicy:
    """A policy near one of the loggers, between both, or far from both."""
    expert = get_environment("support_desk").policies()["expert"]
    parts = {
        "like one of them": [(0.85, apprentice), (0.15, expert)],
        "like the other": [(0.85, by_the_book), (0.15, expert)],
        "between them": [(0.5, apprentice), (0.5, by_the_book)],
        "far from both": [(1.0, expert)],
    }
    return mixed("target", parts[target])  # pyright: ignore[reportArgumentType]


def _from_pool(name: str, pool: DeskPool, kind: str) -> Problem:

    def draw(n: int, rng: np.random.Generator) -> SessionBatch:
        return _with_model(pool.batch.select(rng.choice(pool.batch.n_sessions, n, replace=False)))

    return Problem(name, draw, pool.truth, (-1.5, 1.5), kind)


def _desk_pool(share: float, sessions: int) -> DeskPool:
    policies = get_environment("support_desk").policies()
    apprentice, expert = policies["apprentice"], policies["expert"]
    target = mixed("mix", [(1 - share, apprentice), (share, expert)])  # pyright: ignore[reportArgumentType]
    return desk_pool(mixed("log", [(1.0, apprentice)]), target, sessions, seed=1)  # pyright: ignore[reportArgumentType]


def _desk_pool_without(sessions: int) -> DeskPool:
    policies = get_environment("support_desk").policies()
    remedies = tuple(map(int, (Intent.FIX, Intent.ESCALATE, Intent.REFUND)))
    logging = mixed("log", [(1.0, policies["apprentice"])], without=remedies)  # pyright: ignore[reportArgumentType]
    target = mixed("expert", [(1.0, policies["expert"])])  # pyright: ignore[reportArgumentType]
    return desk_pool(logging, target, sessions, seed=2)


def _with_model(batch: SessionBatch) -> SessionBatch:
    """A crude model: the mean return to go at each turn of the log, whatever the state and action."""
    if batch.q is not None:
        return batch
    layout, to_go = batch.layout, np.zeros(batch.n_turns)
    for t in range(layout.n_steps - 1, -1, -1):
        rows = layout.index[layout.starts[t] : layout.starts[t + 1]]
        going = rows[: layout.alive[t + 1]] if t + 1 < layout.n_steps else rows[:0]
        to_go[rows] = batch.reward[rows]
        to_go[going] += batch.gamma * to_go[going + 1]
    means = layout.step_sums(layout.by_step(to_go)) / layout.alive
    turn = np.arange(batch.n_turns) - np.repeat(batch.offsets[:-1], batch.lengths)
    return replace(batch, q=means[turn], v=means[turn])


def run(preset: str) -> dict[str, float]:
    """Print the table and return its summary."""
    sizes, replications, pool = ((300,), 40, 2000) if preset == "debug" else ((300, 1000), 400, 10_000)
    made = [*abstract_problems(), *desk_problems(pool)]
    results: Results = []
    for n in sizes:
        for problem in made:
            results.append((problem, n, simulate(problem, n, replications)))
            print(_line(*results[-1]), file=sys.stderr, flush=True)
    Console(width=170).print(_table(results))
    return summarise(results)


Results = list[tuple[Problem, int, dict[str, Tally]]]


def summarise(results: Results) -> dict[str, float]:
    """Pooled coverages and verdict error rates."""
    results = [r for r in results if r[0].kind != "unweighed"]
    tallies = [t for _, _, by_name in results for t in by_name.values()]
    metrics: dict[str, float] = {}
    for method in METHODS:
        count = sum(t.verdicts["estimate"] for t in tallies)
        metrics[f"coverage {method}"] = sum(t.hits[method] for t in tallies) / max(count, 1)
        often = [t.coverage(method) for t in tallies if t.share("estimate") >= 0.5]
        metrics[f"lowest coverage {method}"] = min(often)
        metrics[f"highest coverage {method}"] = max(often)
    bounds = [by_name["wis"].coverage("bounds") for _, _, by_name in results]
    metrics["lowest coverage finite-sample bounds"] = min(bounds)
    for kind, verdict in (
        ("no support", "not identified"),
        ("supported", "not identified"),
        ("supported", "estimate"),
    ):
        shares = [t.share(verdict) for p, _, by_name in results if p.kind == kind for t in by_name.values()]
        metrics[f"{kind}: mean share of '{verdict}'"] = float(np.mean(shares))
        wrong = kind == "supported" and verdict == "not identified"
        metrics[f"{kind}: worst share of '{verdict}'"] = max(shares) if wrong else min(shares)
    return metrics


def _line(problem: Problem, n: int, by_name: dict[str, Tally]) -> str:
    """Progress: shares of ``estimate`` and ``not identified``, then the coverages."""
    cells = [
        f"{name} {t.share('estimate'):.2f}/{t.share('not identified'):.2f} "
        + "/".join(f"{t.coverage(m):.3f}" for m in (*METHODS, "bounds"))
        for name, t in by_name.items()
    ]
    return f"{problem.name}, {n} sessions: {'; '.join(cells)}"


def _table(results: Results) -> Table:
    table = Table(
        title="Coverage of 95 % intervals where the verdict is 'estimate' (mean width), and verdicts"
    )
    for name in ("problem", "sessions", "estimator", "estimate / bounds / no"):
        table.add_column(name)
    for method in (*METHODS, "finite-sample bounds"):
        table.add_column(method, justify="right")
    for problem, n, by_name in results:
        for name, tally in by_name.items():
            shares = " / ".join(f"{tally.share(k):.0%}" for k in tally.verdicts)
            cells = [f"{tally.coverage(m):.3f} ({tally.width(m):.3g})" for m in METHODS]
            bounds = f"{tally.coverage('bounds'):.3f} ({tally.width('bounds'):.3g})" if name == "wis" else ""
            label = f"{problem.name} [{problem.kind}]" if name == ESTIMATORS[0] else ""
            table.add_row(label, str(n), name, shares, *cells, bounds)
        table.add_section()
    return table


if __name__ == "__main__":
    bench_main(run, title="Coverage", goals={f"coverage {m}": "0.93 … 0.98" for m in METHODS})
