"""A server on Serve for tests, and what evaluations are compared by."""

import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from preplay.embedding import embed_dataset
from preplay.pipeline import EvaluationRequest, evaluate_policies, load_config, train_models, write_logs
from preplay.report import EvaluationReport
from preplay_serve._config import ServerConfig
from preplay_serve.store import Store

TRUTH_SESSIONS = 50
SPEC: dict[str, Any] = {
    "policies": ["env:expert"], "dataset": "shop/embedded", "models": "shop/models",
    "environment": "support_desk", "preset": "debug", "seed": 3,
    "estimators": ["mean", "wpdis", "model.dm", "model.wdr"],
}  # fmt: skip


@dataclass
class Served:
    """A running server."""

    url: str
    token: str
    config: ServerConfig
    store: Store


def make_models(folder: Path, cache: Path) -> None:
    """A small log of a known environment, embedded, and a world model of it."""
    config = load_config(preset="debug", seed=0)
    write_logs(folder / "dataset", sessions=16, seed=0)
    embed_dataset(folder / "dataset", folder / "embedded", config.encoder, cache_dir=cache)
    train_models(folder / "embedded", folder / "models", config, console=quiet())


def run_reference(root: Path, output: Path, cache: Path) -> EvaluationReport:
    """What ``preplay compare`` finds."""
    request = EvaluationRequest(
        data=str(root / SPEC["dataset"]),
        models=str(root / SPEC["models"]),
        policies=tuple(SPEC["policies"]),
        output=output,
        cache=cache,
        environment=SPEC["environment"],
        estimators=tuple(SPEC["estimators"]),
        truth_sessions=TRUTH_SESSIONS,
    )
    return evaluate_policies(request, load_config(preset="debug", seed=SPEC["seed"]), console=quiet())


def comparable(report: EvaluationReport | None) -> dict:
    """A report without when and where it was made."""
    assert report is not None
    return report.model_dump(mode="json", exclude={"created", "commands", "dataset"})


def quiet() -> Console:
    return Console(file=io.StringIO())
