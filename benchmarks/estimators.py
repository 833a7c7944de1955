"""Time and memory of the estimators and the bootstrap on a million turns, beside SCOPE-RL and RLlib.

All get the same arrays: sessions of equal length, because SCOPE-RL knows no others. RLlib takes a tenth of
them (its time grows with the number of sessions, which the table scales up); its policy's forward passes are
not counted.
"""

import subprocess
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._common import bench_main
from benchmarks._venvs import ensure_venv, run_json
from preplay.estimators import SessionBatch, available, evaluate_estimator, get_estimator

STEPS, ACTIONS, GAMMA = 10, 4, 0.97
SCOPE = ["scope-rl==0.2.1", "torch==2.13.0"]
RLLIB = ["ray[rllib]==2.60.0", "torch==2.13.0"]


def run(preset: str) -> dict[str, float]:
    """Measure ours, then each other package in an environment of its own."""
    sessions = 10_000 if preset == "debug" else 100_000
    data = make_data(sessions)
    batch = to_batch(data)
    metrics: dict[str, float] = {"turns": batch.n_turns}
    for name in available():
        metrics |= _ours(name, batch)
    metrics |= _bootstrap(batch, 1000 if preset == "debug" else 10_000)
    metrics |= _memory_growth(batch)
    if preset == "full":
        metrics |= _others(data, batch, metrics)
    return metrics


def make_data(sessions: int, seed: int = 0) -> dict[str, np.ndarray]:
    """Logged actions, their probabilities, the target's, rewards and a model's values; R = sessions × STEPS rows."""
    rng, rows = np.random.default_rng(seed), sessions * STEPS
    logged = rng.dirichlet(np.full(ACTIONS, 8.0), rows)
    target = 0.8 * logged + 0.2 * rng.dirichlet(np.full(ACTIONS, 8.0), rows)
    action = (rng.random((rows, 1)) > logged.cumsum(1)).sum(1).clip(max=ACTIONS - 1)
    q = rng.normal(size=(rows, ACTIONS))
    return {
        "action": action,
        "reward": rng.normal(size=rows) + action,
        "pscore": logged[np.arange(rows), action],
        "target": target,
        "q": q,
        "v": (target * q).sum(1),
        "cluster": rng.integers(0, 10, rows),
    }


def to_batch(data: dict[str, np.ndarray]) -> SessionBatch:
    """The same rows as sessions."""
    rows = np.arange(len(data["action"]))
    ratio = np.log(data["target"][rows, data["action"]] / data["pscore"])
    return SessionBatch(
        np.arange(0, len(rows) + 1, STEPS),
        data["reward"],
        GAMMA,
        log_ratio=ratio,
        log_cluster_ratio=ratio,
        q=data["q"][rows, data["action"]],
        v=data["v"],
        state_cluster=data["cluster"],
    )


def _fresh(batch: SessionBatch) -> SessionBatch:
    """Without anything computed before."""
    return SessionBatch(**{f: getattr(batch, f) for f in SessionBatch.__dataclass_fields__})


def _ours(name: str, batch: SessionBatch) -> dict[str, float]:
    estimator = get_estimator(name)
    value, seconds = _timed(lambda: estimator.value(estimator.statistics(_fresh(batch))))
    peak = _peak_megabytes(lambda: estimator.value(estimator.statistics(_fresh(batch))))
    return {f"seconds {name}": seconds, f"peak MB {name}": peak, f"value {name}": value}


def _bootstrap(batch: SessionBatch, resamples: int) -> dict[str, float]:
    """10,000 resamples in one go against a loop that resamples sessions and estimates, timed on a few."""
    estimator = get_estimator("wpdis")
    started = time.perf_counter()
    evaluate_estimator(estimator, _fresh(batch), resamples=resamples)
    whole = time.perf_counter() - started
    started = time.perf_counter()
    estimator.resampled(batch, resamples, 0)
    ours = time.perf_counter() - started
    loop = _plain_loop(batch, 20) * resamples / 20
    return {
        f"seconds bootstrap wpdis x{resamples}": ours,
        "peak MB bootstrap wpdis": _peak_megabytes(
            lambda: estimator.resampled(batch, min(resamples, 2000), 0)
        ),
        "seconds evaluate wpdis, all of it": whole,
        "bootstrap: times faster than a plain loop": loop / ours,
    }


def _plain_loop(batch: SessionBatch, resamples: int) -> float:
    """The obvious vectorised numpy: weights once, then per resample draw sessions and normalise again."""
    rng, n = np.random.default_rng(0), batch.n_sessions
    assert batch.log_ratio is not None
    weight = np.exp(batch.log_ratio.reshape(n, STEPS).cumsum(1))
    reward = batch.reward.reshape(n, STEPS) * GAMMA ** np.arange(STEPS)
    started = time.perf_counter()
    for _ in range(resamples):
        drawn = rng.integers(0, n, n)
        w, r = weight[drawn], reward[drawn]
        ((w * r).sum(0) / w.sum(0)).sum()
    return time.perf_counter() - started


def _memory_growth(batch: SessionBatch) -> dict[str, float]:
    """Peak memory of ten times the sessions over that of one tenth: 10 when linear."""
    estimator = get_estimator("wdr")
    tenth = batch.select(np.arange(batch.n_sessions // 10))
    peaks = [_peak_megabytes(lambda b=b: estimator.statistics(_fresh(b))) for b in (tenth, batch)]
    return {"peak memory at 10x the sessions": peaks[1] / peaks[0]}


def _others(data: dict[str, np.ndarray], batch: SessionBatch, ours: dict[str, float]) -> dict[str, float]:
    metrics: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "arrays.npz"
        extra = {"steps": STEPS, "resamples": 100, "gamma": GAMMA, "rllib_sessions": batch.n_sessions // 10}
        np.savez(path, **data, **extra)
        for package, requirements, script in (
            ("SCOPE-RL", SCOPE, "_scope_rl_script.py"),
            ("RLlib", RLLIB, "_rllib_script.py"),
        ):
            try:
                theirs = run_json(ensure_venv(package.lower(), requirements), script, str(path))
            except subprocess.CalledProcessError as error:
                print(f"{package} could not be measured here: {error.stderr or error}")
                continue
            metrics |= _ratios(package, theirs, ours, batch)
    return metrics


def _ratios(
    package: str, theirs: dict[str, Any], ours: dict[str, float], batch: SessionBatch
) -> dict[str, float]:
    scale = 10.0 if package == "RLlib" else 1.0
    metrics = {f"{package}: peak MB of the process": theirs["peak MB"]}
    for key, seconds in theirs.items():
        if key.startswith("seconds ") and f"value {key[8:]}" in theirs:
            name = key[8:]
            metrics[f"{package} {name}: seconds"] = seconds * scale
            metrics[f"{package} {name}: times slower than ours"] = seconds * scale / ours[key]
            own = (
                ours[f"value {name}"]
                if package == "SCOPE-RL"
                else _value(name, batch, batch.n_sessions // 10)
            )
            metrics[f"{package} {name}: value minus ours"] = theirs[f"value {name}"] - own
    if "seconds bootstrap" in theirs:
        metrics[f"{package} bootstrap x10000 of a plain mean: seconds"] = theirs["seconds bootstrap"] * 100
    return metrics


def _value(name: str, batch: SessionBatch, sessions: int) -> float:
    estimator = get_estimator(name)
    return estimator.value(estimator.statistics(batch.select(np.arange(sessions))))


def _timed(work: Callable[[], float], repeats: int = 3) -> tuple[float, float]:
    times, value = [], 0.0
    for _ in range(repeats):
        started = time.perf_counter()
        value = work()
        times.append(time.perf_counter() - started)
    return value, min(times)


def _peak_megabytes(work: Callable[[], object]) -> float:
    tracemalloc.start()
    work()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 1e6


GOALS = {
    "bootstrap: times faster than a plain loop": ">= 20",
    "peak memory at 10x the sessions": "about 10",
    **{f"RLlib {name}: times slower than ours": ">= 10" for name in ("pdis", "wpdis")},
    **{
        f"SCOPE-RL {name}: times slower than ours": ">= 1"
        for name in ("dm", "is", "wis", "pdis", "wpdis", "dr", "wdr")
    },
}

if __name__ == "__main__":
    bench_main(run, title="Estimators", goals=GOALS)
