"""What the command line does, as plain functions."""

import json
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pyarrow as pa

from preplay.actions import PLAIN, detect_adapters
from preplay.artifacts import open_artifact
from preplay.control._analyze import FailureAnalysis, analyze_failures
from preplay.control._audit import AuditLog
from preplay.control._retrain import RetrainResult, decisions_turns, replace_critic, retrain
from preplay.critics import (
    ActionEncoder,
    ClassifierKind,
    CriticConfig,
    CriticMetrics,
    decision_texts,
    decisions_from_turns,
    evaluate_critic,
    load_scorer,
    save_scorer,
    saved_encoder,
    split_groups,
    train_classifier,
    train_critic,
)
from preplay.embedding import EncoderConfig, embedded_encoder
from preplay.environments.code_repair import (
    Grader,
    SandboxConfig,
    SessionConfig,
    generator,
    log_sessions,
    noisy_expert,
    split_tasks,
    write_trajectories,
)
from preplay.errors import PreplayError
from preplay.logs import load_turns
from preplay.seeding import numpy_rng

HELD_OUT = 0.25


def train_from_dataset(
    dataset: str,
    output: str | Path,
    config: CriticConfig | ClassifierKind,
    *,
    seed: int,
    cache: Path,
    graded: ClassifierKind | None = None,
    horizon: int | None = None,
    embed: bool | None = None,
) -> CriticMetrics:
    """Train on three quarters of a dataset's tasks, measure on the rest, write the critic (or plain classifier).

    Args:
        graded: The classifier to train instead where the logs say of each action whether it was right.
        embed: Whether the critic reads sentence embeddings beside the actions' structure; by default where most
            actions are plain text, whose structure says little.
        cache: Folder in which embeddings are kept for the next time, where there are any.
    """
    turns = load_turns(dataset)
    if graded and says_what_was_right(turns):
        config = graded
    encoder = encoder_for(turns, EncoderConfig(), cache, embed=embed, horizon=horizon)
    train, held = split_groups(
        decisions_from_turns(turns, encoder), HELD_OUT, numpy_rng(seed, "held-out tasks")
    )
    known = {"feature_names": encoder.feature_names, "fingerprint": encoder.fingerprint}
    if isinstance(config, CriticConfig):
        critic = train_critic(config, train, seed=seed, **known)
    else:
        critic = train_classifier(config, train, seed=seed, **known)
    metrics = evaluate_critic(critic, held)
    inputs = {"dataset": open_artifact(dataset, "dataset").manifest.content_hash}
    save_scorer(
        critic, output, encoder=encoder, inputs=inputs, metrics=asdict(metrics) | {"split_seed": seed}
    )
    return metrics


def encoder_for(
    turns: pa.Table,
    config: EncoderConfig,
    cache: Path,
    *,
    embed: bool | None = None,
    horizon: int | None = None,
) -> ActionEncoder:
    """The encoder of these logs' states and actions, with sentences already embedded where it reads them.

    Args:
        embed: See :func:`train_from_dataset`.
        horizon: Turns that a session may have; by default the longest logged.
    """
    longest = int(np.max(turns["turn"].to_numpy())) + 1
    encoder = ActionEncoder(horizon=horizon or longest, evidence=evidence_names(turns))
    shares = detect_adapters(turns["action"].to_pylist()).shares
    if embed or (embed is None and shares.get(PLAIN, 0.0) > 0.5):
        encoder.encoder = embedded_encoder(decision_texts(turns, encoder), config, cache)
    return encoder


def says_what_was_right(turns: pa.Table) -> bool:
    """Whether each turn's ``extras["solved"]`` tells if its action was right, and some were and some were not."""
    known = set()
    for text in turns["extras"].to_pylist():
        known.add(json.loads(text).get("solved") if text else None)
        if None in known:
            return False
    return known == {True, False}


def evidence_names(turns: pa.Table) -> tuple[str, ...]:
    """Names of the numbers that the harness logged about each candidate (``extras["evidence_names"]``)."""
    named = {
        tuple(json.loads(text).get("evidence_names") or ()) for text in turns["extras"].to_pylist() if text
    }
    if len(named) > 1:
        raise PreplayError(
            f"turns differ in their evidence: {sorted(named)[:2]}.",
            where="extras.evidence_names",
            fix="Log the same numbers about every candidate, or train on one kind of log.",
        )
    return next(iter(named), ())


def record_noisy_expert(
    output: str | Path, *, sessions: int, seed: int, source: str = "plausible", interrupted: float = 0.3
) -> int:
    """Write trajectories of an expert interrupted at random; :func:`simulate_code_repair` uses the other tasks."""
    tasks, _ = split_tasks(seed)
    grader = Grader(SandboxConfig(seconds=0.1))
    behaviours = {"noisy expert": noisy_expert(grader, interrupted)}
    config = SessionConfig(evidence=True)
    turns = log_sessions(
        tasks, [generator(source)], behaviours, grader, sessions=sessions, seed=seed, config=config
    )
    return write_trajectories(turns, output)


def evaluate_on_dataset(critic: str, dataset: str) -> CriticMetrics:
    """Measure a critic on all decisions of a dataset (of tasks it has not seen)."""
    data = decisions_from_turns(load_turns(dataset), saved_encoder(critic))
    return evaluate_critic(load_scorer(critic), data)


def analyze_audit(audit: str, critic: str) -> FailureAnalysis:
    """Sort an audit log's failures by cause; a candidate is right where it succeeded anywhere in its task."""
    log = AuditLog(audit)
    rows = log.read().to_pylist()
    right = {(row["task"], row["action"]) for row in rows if row["success"]}
    turns = decisions_turns(log)
    if not turns.num_rows:
        raise PreplayError("the audit log has no decision with a known outcome.", where=audit)
    data = decisions_from_turns(turns, saved_encoder(critic))
    known = _candidates_of(turns)
    labels = np.array([(task, code) in right for task, code in known])
    return analyze_failures(data, load_scorer(critic).score(data.pools).mean, labels)


def retrain_from_audit(
    critic: str, dataset: str, audit: str, output: str | Path, *, seed: int
) -> RetrainResult:
    """Train on the old dataset and the audit log; ``output`` is written only if the new critic is no worse.

    The old held-out tasks are those that :func:`train_from_dataset` kept aside.
    """
    encoder, current = saved_encoder(critic), load_scorer(critic)
    metrics = open_artifact(critic, "critic").manifest.metrics
    split = numpy_rng(int(metrics.get("split_seed", seed)), "held-out tasks")
    old, held = split_groups(decisions_from_turns(load_turns(dataset), encoder), HELD_OUT, split)
    turns = decisions_turns(AuditLog(audit))
    if not turns.num_rows:
        raise PreplayError("the audit log has no decision with a known outcome.", where=audit)
    chosen, result = retrain(current, old, decisions_from_turns(turns, encoder), held, seed=seed)
    replace_critic(output, chosen, result, encoder=encoder)
    return result


def _candidates_of(turns: pa.Table) -> list[tuple[str, str]]:
    """(task, candidate) of every candidate, in the order of the decisions."""
    ordered = turns.sort_by([("session_id", "ascending"), ("turn", "ascending")])
    rows = ordered.select(["task", "extras", "action"]).to_pylist()
    out = []
    for row in rows:
        pool = json.loads(row["extras"])["candidates"]
        out += [(row["task"], code) for code in (pool if row["action"] in pool else [*pool, row["action"]])]
    return out
