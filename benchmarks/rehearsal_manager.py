"""The rehearsal manager part by part: what each one changes in a world whose truth is known.

Every figure is measured in the true environment; models are learned from the real steps named. Parts:
``train`` (real steps until a learner has solved two rooms), ``decide`` (planners), ``drift`` (re-injected states),
``levels``, ``dreaming``, ``two agents``, ``director``, and ``desk`` (deciding now on the support desk in a model
learned from its logs).
"""

import os
from collections.abc import Callable

from benchmarks._common import bench_main
from benchmarks._manager_decide import agent_results, director_results, level_results, planner_results
from benchmarks._manager_desk import desk_results
from benchmarks._manager_dream import dream_results
from benchmarks._manager_drift import drift_results
from benchmarks._manager_train import train_results

SEEDS = {"debug": 3, "full": 10}
PARTS: dict[str, Callable[[range], dict[str, float]]] = {
    "train": train_results,
    "decide": planner_results,
    "drift": drift_results,
    "levels": level_results,
    "dreaming": dream_results,
    "two agents": agent_results,
    "director": director_results,
}
GOALS = {
    "train: rehearsal, real steps": "below replayed real steps",
    "train: placebo model (never trained), real steps": "no better than real steps only",
    "desk: rehearsed, 4 likely replies then the clone over the better logger": "> 0",
}


def run(preset: str) -> dict[str, float]:
    """All parts, or those named in PREPLAY_PARTS (separated by commas)."""
    wanted = [p.strip() for p in os.environ.get("PREPLAY_PARTS", "").split(",") if p.strip()]
    results: dict[str, float] = {}
    for name, part in PARTS.items():
        if not wanted or name in wanted:
            results |= part(range(SEEDS[preset]))
    if not wanted or "desk" in wanted:
        results |= desk_results(preset)
    return results


if __name__ == "__main__":
    bench_main(run, title="Rehearsal manager", goals=GOALS)
