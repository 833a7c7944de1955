"""A store with something on every page, and with hostile texts where texts can stand."""

import datetime as dt
from pathlib import Path

from preplay_serve.store import (
    DecisionContent,
    DecisionRecord,
    EvaluationSpec,
    OutcomeRecord,
    PartialEstimate,
    Progress,
    Store,
    open_store,
)
from tests.report.sample_report import HOSTILE, full_report, hostile_report

NOON = dt.datetime(2026, 5, 30, 12, tzinfo=dt.UTC)
POLICIES = ("env:empathetic", "env:step-by-step", "env:concise", "env:upsell")
CANDIDATES = (
    "I have refunded the double charge; you will see it within three days.",
    "Please restart your router and write to us again.",
    "Could you tell me the number of the invoice?",
)


def sample_store(folder: Path) -> Store:
    """Evaluations in every state, sixty decisions, published artifacts."""
    store = open_store(f"sqlite:///{folder / 'pages.db'}")
    add_evaluations(store)
    store.decisions.add([decision(number) for number in range(60)])
    store.decisions.record_outcome("de_0058", OutcomeRecord(reward=0.98, success=True, time=NOON))
    store.decisions.record_outcome("de_0057", OutcomeRecord(reward=-1.02, success=False, time=NOON))
    add_artifacts(store)
    return store


def spec(*policies: str) -> EvaluationSpec:
    return EvaluationSpec(policies=policies, dataset="support-desk-1000", models="spring", seed=7)


def evaluate(store: Store, *policies: str) -> str:
    """Id of an evaluation that runs, and whatever waited before it."""
    record, _ = store.evaluations.create(spec(*policies), token="ana")
    while store.evaluations.claim("runner", lease_s=3600, slots=99).id != record.id:
        pass
    return record.id


def add_evaluations(store: Store) -> dict[str, str]:
    """Ids by what is in them."""
    done, hostile, failed, running = (
        evaluate(store, *p) for p in (POLICIES, (HOSTILE,), ("env:x",), POLICIES[:2])
    )
    finish = store.evaluations.finish
    finish(done, "runner", "succeeded", report_json=full_report().model_dump_json())
    finish(hostile, "runner", "succeeded", report_json=hostile_report().model_dump_json())
    finish(failed, "runner", "failed", error=f"The log-probabilities of 3 turns are above 0: {HOSTILE}")
    partial = [
        PartialEstimate(policy=p, value=v, low=v - 0.08, high=v + 0.08, level=0.95, sessions=412)
        for p, v in zip(POLICIES[:2], (0.52, 0.31), strict=True)
    ]
    store.evaluations.advance(running, "runner", Progress(stage="imagining", done=14, total=32), partial)
    queued, _ = store.evaluations.create(spec("env:concise"), token="ben")
    ids = {"done": done, "hostile": hostile, "failed": failed, "running": running, "queued": queued.id}
    cancelled, _ = store.evaluations.create(spec("env:upsell"), token="ben")
    store.evaluations.cancel(cancelled.id)
    return ids | {"cancelled": cancelled.id}


def decision(number: int) -> DecisionRecord:
    """The higher the number, the later; every tenth asks for a review, every seventh falls back."""
    kind = "review" if number % 10 == 0 else "fallback" if number % 7 == 0 else "act"
    texts = (
        (HOSTILE, HOSTILE + "x" * 900)
        if number == 59
        else ("Refund a double charge", f"Customer {number} writes.")
    )
    content = DecisionContent(
        task=texts[0],
        observation=texts[1],
        turn=number % 5,
        candidates=(*CANDIDATES, texts[1]),
        scores=(0.71 + number / 1000, -0.12, 0.44, None),
        action={"act": CANDIDATES[0], "fallback": "Let me ask a colleague.", "review": None}[kind],
        index=0 if kind == "act" else None,
        confidence=0.71 + number / 1000,
        reasons=(
            "the best candidate is ahead by 0.27",
            "one candidate was blocked: it repeats the last turn",
        ),
    )
    return DecisionRecord(
        id=f"de_{number:04d}",
        time=NOON + dt.timedelta(hours=number),
        model="careful" if number % 2 else "quick",
        version="0f3c9a7e51d2c4b8",
        decision=kind,
        token="agent",
        session_id=f"session-{number // 5}",
        content=content,
    )


def add_artifacts(store: Store) -> None:
    metrics = {"auc": 0.874, "accuracy": 0.81, "ece": 0.021, "turns": 5601}
    details = {
        "algorithm": "iql",
        "encoder": {"model": "all-MiniLM-L6-v2", "dtype": "bf16"},
        "metrics": metrics,
    }
    for version in ("aa11bb22cc33dd44", "0f3c9a7e51d2c4b8"):
        store.artifacts.publish("critic", "careful", version, "/secret/path/careful", details)
    store.artifacts.publish(
        "critic", "quick", "77ee88ff99aa0011", "/secret/path/quick", details | {"algorithm": "awr"}
    )
    store.artifacts.publish(
        "world_models", "spring", "5566778899aabbcc", "/secret/path/spring",
        {"members": 3, "energy score": [0.412, 0.409, 0.415], "note": HOSTILE},
    )  # fmt: skip
    store.artifacts.publish(
        "dataset", "support-desk-1000", "1234567890abcdef", "/secret/path/data",
        {"sessions": 1000, "turns": 6183, "policies": {"cautious": 612, "hurried": 388}},
    )  # fmt: skip
