"""Shared command line of the benchmarks: a preset, an optional JSON file, one table of metrics."""

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path

from rich.console import Console
from rich.table import Table


def bench_main(
    run: Callable[[str], dict[str, float]], *, title: str, goals: dict[str, str] | None = None
) -> None:
    """Parse ``--preset`` and ``--json``, run the benchmark, print its metrics and write them.

    Args:
        run: Takes the preset (``debug`` takes under 3 minutes) and returns ``{metric: value}``.
        title: Heading of the table.
        goals: What each metric should reach, in words; printed beside the value.
    """
    parser = argparse.ArgumentParser(description=title)
    parser.add_argument("--preset", choices=["debug", "full"], default="full")
    parser.add_argument("--json", type=Path, metavar="OUT", help="write {metric: value} here")
    args = parser.parse_args()
    started = time.perf_counter()
    metrics = run(args.preset)
    print_metrics(
        metrics, title=f"{title} ({args.preset}, {time.perf_counter() - started:.0f} s)", goals=goals
    )
    if args.json:
        args.json.parent.mkdir(parents=True, exist_ok=True)
        args.json.write_text(json.dumps(metrics, indent=2) + "\n")


def print_metrics(metrics: dict[str, float], *, title: str, goals: dict[str, str] | None = None) -> None:
    """One row per metric, its goal beside it where there is one."""
    table = Table(title=title)
    table.add_column("metric")
    table.add_column("value", justify="right")
    table.add_column("goal", justify="right")
    for name, value in metrics.items():
        table.add_row(name, f"{value:,.4g}", (goals or {}).get(name, ""))
    Console(width=120).print(table)
