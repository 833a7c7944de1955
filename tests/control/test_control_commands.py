"""The commands from logs to a retrained critic, on a small code-repair run."""

import pytest
import typer
from typer.testing import CliRunner

from preplay.cli._control import add_to
from preplay.control import AuditLog
from preplay.environments.code_repair import (
    Grader,
    SandboxConfig,
    first_candidate,
    generator,
    log_sessions,
    split_tasks,
)
from preplay.logs import write_dataset


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    folder = tmp_path_factory.mktemp("control")
    grader = Grader(SandboxConfig(seconds=0.1))
    train, _ = split_tasks(0)
    turns = log_sessions(
        train[:8], [generator("middling")], {"first": first_candidate}, grader, sessions=24, seed=0
    )
    write_dataset(turns, str(folder / "dataset"), config={})
    return folder


def run(*arguments: str) -> str:
    app = typer.Typer()
    add_to(app)
    result = CliRunner().invoke(app, [str(a) for a in arguments])
    assert result.exit_code == 0, result.output
    return result.output


@pytest.mark.parametrize("algorithm", ["iql", "logistic"])
def test_from_logs_to_a_retrained_critic(dataset, algorithm):
    critic, audit = str(dataset / f"critic-{algorithm}"), str(dataset / f"audit-{algorithm}")
    data, new = str(dataset / "dataset"), str(dataset / f"new-{algorithm}")
    how = ("--algorithm", algorithm, "--steps", "40")
    assert "auc" in run("critic", "train", data, "--output", critic, *how)
    assert "decisions" in run("critic", "evaluate", data, "--critic", critic)
    out = run("control", "simulate", "--critic", critic, "--sessions", "6", "--audit", audit)
    assert "uplift" in out
    table = AuditLog(audit).read()
    assert table.num_rows >= 6
    assert table["reward"].null_count == 0
    assert "generator" in run("control", "analyze", "--audit", audit, "--critic", critic)
    again = run("control", "retrain", data, "--critic", critic, "--audit", audit, "--output", new)
    assert "difference" in again
