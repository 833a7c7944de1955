"""The whole product on a world whose truth is known."""

from pathlib import Path

import pyarrow as pa
from rich.console import Console

from preplay.artifacts import is_complete
from preplay.embedding import embed_dataset
from preplay.environments import get_environment
from preplay.logs import load_card, render_card, write_dataset
from preplay.pipeline._config import PreplayConfig
from preplay.pipeline._context import EvaluationRequest
from preplay.pipeline._evaluate import evaluate_policies
from preplay.pipeline._models import train_models
from preplay.report import EvaluationReport
from preplay.seeding import derive_seed

ENVIRONMENT = "support_desk"


def run_demo(
    folder: Path, config: PreplayConfig, *, sessions: int, cache: Path, console: Console
) -> EvaluationReport:
    """Log two behaviour policies, learn from the logs, judge every target policy; steps already done are kept.

    Ray must be running.
    """
    console.rule(f"1. Logs: {sessions} sessions of two support agents")
    dataset = folder / "dataset"
    write_logs(dataset, sessions=sessions, seed=config.seed)
    console.print(render_card(load_card(dataset)))
    console.rule("2. Embeddings")
    embed_dataset(dataset, folder / "embedded", config.encoder, cache_dir=cache)
    console.rule("3. World models")
    train_models(folder / "embedded", folder / "models", config, console=console)
    console.rule("4. Policies that never ran")
    targets = get_environment(ENVIRONMENT).target_policies()
    request = EvaluationRequest(
        data=str(folder / "embedded"),
        models=str(folder / "models"),
        policies=tuple(f"env:{name}" for name in targets),
        output=folder / "report",
        cache=cache,
        environment=ENVIRONMENT,
    )
    return evaluate_policies(request, config, console=console)


def write_logs(path: Path, *, sessions: int, seed: int, environment: str = ENVIRONMENT) -> None:
    """Simulate sessions of the behaviour policies, in equal shares, as a dataset with exact propensities."""
    config = {"environment": environment, "sessions": sessions, "seed": seed}
    if is_complete(path, "dataset", config=config, inputs={}):
        return
    known = get_environment(environment)
    behaviour = known.behaviour_policies()
    share, rest = divmod(sessions, len(behaviour))
    tables = [
        known.simulate(policy, share + (number < rest), derive_seed(seed, "logs", name))
        for number, (name, policy) in enumerate(behaviour.items())
    ]
    write_dataset(pa.concat_tables(tables), str(path), config=config, seed=seed)
