"""What an evaluation found, for people: ``result.json``, one self-contained page, a table and a sentence."""

from preplay.report._schema import (
    SCHEMA_VERSION,
    BehaviorPolicy,
    CalibrationBin,
    DriftCurve,
    Estimate,
    EvaluationReport,
    Interval,
    ModelQuality,
    PolicyResult,
    Ranking,
    SessionPair,
    Support,
    Truth,
    Turn,
    Verdict,
    json_schema,
)

__all__ = [
    "SCHEMA_VERSION",
    "BehaviorPolicy",
    "CalibrationBin",
    "DriftCurve",
    "Estimate",
    "EvaluationReport",
    "Interval",
    "ModelQuality",
    "PolicyResult",
    "Ranking",
    "SessionPair",
    "Support",
    "Truth",
    "Turn",
    "Verdict",
    "json_schema",
]
