"""A critic drives an agent: executed success on code-repair and sql-shell, held-out tasks and databases only.

    python -m benchmarks.control --preset debug

Every choice is executed by the environment's own grader. Critics and the plain calibrated classifier see the same
numbers; settings were chosen on training tasks, never on a test task or database. SQL needs the InterCode logs
(``intercode-sql`` under $PREPLAY_SHARED_DATA or ../shared/data); without them its rows are left out.
"""

import os
from pathlib import Path

from benchmarks._common import bench_main
from benchmarks._control_code import CodeSettings, code_repair
from benchmarks._control_sql import sql_shell

GOALS = {
    "code | IQL | gap closed": ">= .6",
    "code | IQL | success": ">= .85",
    "code | IQL | dangerous": "0",
    "sql | first action | IQL | uplift": ">= .06",
    "sql | final answer | IQL | uplift": ">= .03",
}


def run(preset: str) -> dict[str, float]:
    """All tables as ``{"environment | arm | column": value}``."""
    debug = preset == "debug"
    seeds = 1 if debug else 5
    one = CodeSettings(logged=120, played=32, steps=100, members=2) if debug else CodeSettings()
    spread = CodeSettings(one.logged, one.played, one.steps, one.members, "puzzled", 0.5)
    out = {f"code | {name}": value for name, value in code_repair(seeds, one).items()}
    out |= {f"code, credit over turns | {name}": value for name, value in code_repair(seeds, spread).items()}
    folder = _shared() / "intercode-sql"
    if folder.exists():
        sql = sql_shell(folder, seeds, folds=2, steps=one.steps, members=one.members)
        out |= {f"sql | {name}": value for name, value in sql.items()}
    return out


def _shared() -> Path:
    default = Path(__file__).parents[2] / "shared" / "data"
    return Path(os.environ.get("PREPLAY_SHARED_DATA", default))


if __name__ == "__main__":
    bench_main(run, title="Control: executed uplift of critics", goals=GOALS)
