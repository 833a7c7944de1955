"""The commands from logs to a retrained critic, on a small code-repair run."""

import pyarrow as pa
import pytest
import typer
from typer.testing import CliRunner

from preplay.cli._control import add_to
from preplay.control import AuditLog, Controller, DecisionState, simulate_conversations
from preplay.control._commands import evidence_names
from preplay.critics import load_scorer, saved_encoder
from preplay.environments import get_environment
from preplay.environments.code_repair import (
    EVIDENCE,
    Grader,
    SandboxConfig,
    first_candidate,
    generator,
    log_sessions,
    split_tasks,
)
from preplay.errors import PreplayError
from preplay.logs import ingest, load_turns, write_dataset


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
    out = run(
        "control",
        "simulate",
        "--critic",
        critic,
        "--sessions",
        "6",
        "--audit",
        audit,
        "--generator",
        "strong",
    )
    assert "uplift" in out
    table = AuditLog(audit).read()
    assert table.num_rows >= 6
    assert table["reward"].null_count == 0
    assert "generator" in run("control", "analyze", "--audit", audit, "--critic", critic)
    again = run("control", "retrain", data, "--critic", critic, "--audit", audit, "--output", new)
    assert "difference" in again


def test_trajectories_of_a_noisy_expert_train_a_critic_that_drives(dataset):
    """Recorded, read as a coding agent's logs, trained on with the harness's evidence, executed on other tasks."""
    logs, data, critic = (str(dataset / name) for name in ("expert.jsonl", "expert", "expert-critic"))
    run("control", "record", logs, "--sessions", "16", "--generator", "reckless")
    artifact = ingest([logs], data)
    assert artifact.manifest.metrics["quarantined"] == 0
    turns = load_turns(data)
    assert evidence_names(turns) == EVIDENCE
    assert set(turns["policy"].to_pylist()) == {"noisy expert"}
    assert "Critic (logistic)" in run("critic", "train", data, "--output", critic)  # these logs are graded
    ensemble = run("critic", "train", data, "--output", str(dataset / "two"), "--members", "2")
    assert "Critic (iql)" in ensemble  # what was asked of networks is not dropped
    log = str(dataset / "reckless-audit")
    how = ("--sessions", "8", "--generator", "reckless", "--audit", log)
    played = measured(run("control", "simulate", "--critic", critic, *how))
    rows = AuditLog(log).read().to_pylist()
    causes = measured(run("control", "analyze", "--audit", log, "--critic", critic))
    assert float(causes["failures"]) == sum(not row["success"] for row in rows)  # scored by the same evidence
    assert float(played["success with critic"]) >= float(played["success without critic"])
    assert float(played["dangerous actions with critic"]) == 0
    with pytest.raises(PreplayError, match="evidence that support_desk does not give"):
        simulate_conversations(critic, "support_desk", sessions=1, seed=0)
    audit = str(dataset / "expert-audit")
    controller = Controller.load(critic, audit=audit)
    decision = controller.decide(DecisionState("Write f.", ""), ["def f():\n    return 1\n"])
    controller.record(decision, reward=1.0)
    assert (decision.outcome, AuditLog(audit).read()["reward"].to_pylist()) == ("chosen", [1.0])


def test_a_critic_of_plain_text_reads_sentences_and_drives_a_support_agent(dataset, ray2):
    """Logs without candidates, tasks or rewards of 1: embeddings by default, saved with the critic, found again."""
    desk = get_environment("support_desk")
    logs = [desk.simulate(policy, 8, seed=0) for policy in desk.behaviour_policies().values()]
    data, critic, audit = (str(dataset / name) for name in ("desk", "desk-critic", "desk-audit"))
    write_dataset(pa.concat_tables(logs), data, config={})
    cache = str(dataset / "cache")
    out = run("critic", "train", data, "--output", critic, "--steps", "40", "--cache", cache)
    assert "Critic (iql)" in out
    assert measured(out)["auc"] == "–"  # no reward says "right"
    assert -1 <= float(measured(out)["action correlation"]) <= 1
    encoder = saved_encoder(critic)
    assert encoder.encoder is not None
    assert encoder.fingerprint == load_scorer(critic).fingerprint
    played = measured(
        run(
            "control",
            "simulate",
            "--critic",
            critic,
            "--environment",
            "support_desk",
            "--sessions",
            "2",
            "--audit",
            audit,
        )
    )
    gain = float(played["return with critic"]) - float(played["return without critic"])
    assert float(played["uplift"]) == pytest.approx(gain, abs=2e-3)
    rows = AuditLog(audit).read()
    assert set(rows["session_id"].to_pylist()) == {"0-0", "0-1"}
    assert rows["reward"].null_count == 0
    assert {len(pool) for pool in rows["candidates"].to_pylist()} == {4}


def measured(output: str) -> dict[str, str]:
    """Values by measure of a printed table."""
    rows = [line.split("│") for line in output.splitlines() if "│" in line]
    return {row[1].strip(): row[2].strip() for row in rows}
