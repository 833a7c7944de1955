"""The decision log as an audit log: what ``preplay control retrain`` learns from."""

from pathlib import Path

from preplay.control import AuditLog, Decision
from preplay.critics import DecisionState
from preplay_serve.store import DecisionRecord, Store

_OUTCOMES = {"act": "chosen", "fallback": "fallback", "review": "review"}


def export_audit(store: Store, output: str | Path) -> int:
    """Write decisions whose texts were kept, and their outcomes; returns how many. Doing it again changes nothing."""
    count, known = 0, set(AuditLog(str(output)).read()["id"].to_pylist())
    for record in store.decisions.all():
        if not record.content.candidates:
            continue
        log = AuditLog(str(output), session=record.session_id or record.id)
        if record.id not in known:
            log.append_decisions([(_state(record), record.content.candidates)], [_decision(record)])
        if record.outcome:
            log.append_outcome(record.id, record.outcome.reward, record.outcome.success)
        count += 1
    AuditLog(str(output)).compact()
    return count


def _state(record: DecisionRecord) -> DecisionState:
    return DecisionState(record.content.task, record.content.observation, record.content.turn)


def _decision(record: DecisionRecord) -> Decision:
    nan, content = float("nan"), record.content
    return Decision(
        id=record.id,
        outcome=_OUTCOMES[record.decision],  # pyright: ignore[reportArgumentType]
        action=content.action,
        index=content.index,
        scores=tuple(nan if score is None else score for score in content.scores),
        confidence=nan if content.confidence is None else content.confidence,
        reasons=content.reasons,
        evidence=content.evidence,
    )
