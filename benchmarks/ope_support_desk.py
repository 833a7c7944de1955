"""Off-policy evaluation against the truth: fresh logs of the support desk, every estimator, every dynamics.

Per log size and seed: simulate two behaviour policies, embed, train, and estimate all target policies; other dynamics
than diffusion at the first size only. Nothing is chosen by looking at the truth; it is only compared with. Rows that
finished are kept, so a killed run continues.
"""

import itertools
import json
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any, Literal

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks._common import bench_main
from preplay.artifacts import atomic_write
from preplay.embedding import embed_dataset
from preplay.environments import get_environment
from preplay.estimators import spearman, value_regret_at_k
from preplay.pipeline import EvaluationRequest, PreplayConfig, evaluate_policies, load_config, write_logs
from preplay.pipeline._models import train_models
from preplay.report import EvaluationReport
from preplay.stage import connect

ENVIRONMENT = "support_desk"
Preset = Literal["default", "debug"]
BASELINES = ("gaussian", "knn")
MODEL_ONLY = ("model.dm", "model.wdr")
SHOWN = (
    "headline",
    "model.dm",
    "model.wdr",
    "model.blend",
    "fqe.dm",
    "fqe.wdr",
    "wpdis",
    "pdis",
    "is",
    "mean",
)
PRESETS: dict[str, dict[str, Any]] = {
    "debug": {"sizes": (60,), "seeds": (1001,), "config": "debug", "baselines": ()},
    "full": {
        "sizes": (1000, 3000, 300),
        "seeds": (1001, 1002, 1003),
        "config": "default",
        "baselines": BASELINES,
    },
}
GOALS = {
    "3000/model.blend/error": "<= 0.06",
    "3000/model.blend/spearman": ">= 0.97",
    "3000/model.dm/error": "<= 0.10",
    "3000/model.dm/spearman": ">= 0.92",
    "1000/model.blend/error": "<= 0.09",
    "1000/model.blend/spearman": ">= 0.95",
}
console = Console(width=120)


def main() -> None:
    """Entry point."""
    bench_main(run, title="Off-policy evaluation on the support desk", goals=GOALS)


def run(preset: str) -> dict[str, float]:
    """Mean over seeds of error, Spearman, regret@1 and coverage for each size and estimator."""
    settings = PRESETS[preset]
    connect()
    work = Path(tempfile.gettempdir()) / f"preplay-bench-ope-{preset}"
    scores: dict[str, list[dict[str, float]]] = defaultdict(list)
    for dynamics in ("diffusion", *settings["baselines"]):
        sizes = settings["sizes"] if dynamics == "diffusion" else settings["sizes"][:1]
        for size, seed in itertools.product(sizes, settings["seeds"]):
            found = _one_log(work, size, seed, dynamics, settings["config"])
            for name, score in found.items():
                scores[f"{size}/{name}"].append(score)
            console.print(_table(scores))
    return {
        f"{row}/{name}": float(np.mean([score[name] for score in found]))
        for row, found in scores.items()
        for name in found[0]
    }


def _one_log(work: Path, size: int, seed: int, dynamics: str, preset: Preset) -> dict[str, dict[str, float]]:
    """Scores of every estimator on one log under one kind of dynamics."""
    folder = work / f"{size}-{seed}"
    kept = folder / f"scores-{dynamics}.json"
    if kept.exists():
        return json.loads(kept.read_text())
    config = load_config(preset=preset, seed=seed)
    write_logs(folder / "dataset", sessions=size, seed=seed)
    if not (folder / "embedded" / "manifest.json").exists():
        embed_dataset(folder / "dataset", folder / "embedded", config.encoder, cache_dir=work / "cache")
    if dynamics == "diffusion":
        found = _scores(_evaluate(folder, config, dynamics, work / "cache", None), SHOWN)
    else:
        report = _evaluate(folder, config, dynamics, work / "cache", MODEL_ONLY)
        found = {f"{dynamics}.{n.split('.')[1]}": s for n, s in _scores(report, MODEL_ONLY).items()}
    atomic_write(kept, json.dumps(found).encode())
    return found


def _evaluate(
    folder: Path, config: PreplayConfig, dynamics: str, cache: Path, estimators: tuple[str, ...] | None
) -> EvaluationReport:
    model = config.world_model.model_copy(update={"dynamics": dynamics})
    config = config.model_copy(update={"world_model": model})
    models = folder / f"models-{dynamics}"
    train_models(folder / "embedded", models, config, console=console)
    targets = get_environment(ENVIRONMENT).target_policies()
    request = EvaluationRequest(
        data=str(folder / "embedded"),
        models=str(models),
        policies=tuple(f"env:{name}" for name in targets),
        output=folder / f"report-{dynamics}",
        cache=cache,
        environment=ENVIRONMENT,
        estimators=estimators,
    )
    return evaluate_policies(request, config, console=console)


def _scores(report: EvaluationReport, names: tuple[str, ...]) -> dict[str, dict[str, float]]:
    """Error as a share of the true values' range, rank correlation, regret@1 and coverage per estimator."""
    true = np.array([p.truth.value for p in report.policies if p.truth])
    span = np.ptp(true)
    found = {}
    for name in names:
        rows = [p.headline if name == "headline" else _named(p.estimates, name) for p in report.policies]
        values = np.array([row.raw_value if row.raw_value is not None else np.nan for row in rows])
        inside = [row.interval.contains(t) for row, t in zip(rows, true, strict=True)]
        known = np.isfinite(values)
        found[name] = {
            "error": float(np.abs(values - true)[known].mean() / span),
            "spearman": spearman(true[known], values[known]),
            "regret": float(value_regret_at_k(true[known], values[known], 1) / span),
            "coverage": float(np.mean(inside)),
            "estimates": float(np.mean([row.verdict == "estimate" for row in rows])),
        }
    return found


def _named(estimates: list, name: str):
    return next(e for e in estimates if e.estimator.rsplit("/", 1)[0] == name)


def _table(scores: dict[str, list[dict[str, float]]]) -> Table:
    table = Table(title="mean (lowest to highest) over the seeds")
    for column in (
        "sessions / estimator",
        "error",
        "Spearman",
        "regret@1",
        "coverage at 95 %",
        "verdict: estimate",
    ):
        table.add_column(column, justify="left" if "/" in column else "right")
    for row, found in scores.items():
        cells = []
        for name in ("error", "spearman", "regret", "coverage", "estimates"):
            values = [score[name] for score in found]
            spread = (
                f" ({min(values):.3f}-{max(values):.3f})" if len(values) > 1 and name != "estimates" else ""
            )
            cells.append(f"{np.mean(values):.3f}{spread}")
        table.add_row(row, *cells)
    return table


if __name__ == "__main__":
    main()
