"""What an evaluation found, for people: ``result.json``, one self-contained page, a table and a sentence."""

from preplay.report._charts import Chart, Shape, Tick
from preplay.report._curves import (
    CalibrationBin,
    ClippedValue,
    Difference,
    Propensities,
    ReturnCurve,
    Weights,
)
from preplay.report._files import read_report, write_report
from preplay.report._html import (
    page_environment,
    render_body,
    render_facts,
    render_html,
    style_sheet,
    viewer_script,
)
from preplay.report._plots import Axis, axis_for
from preplay.report._schema import (
    SCHEMA_VERSION,
    BehaviorPolicy,
    DriftCurve,
    EvaluationReport,
    ModelQuality,
    PolicyResult,
    Ranking,
    SessionPair,
    Support,
    Truth,
    Turn,
    json_schema,
)
from preplay.report._summary import summary_sentence
from preplay.report._table import compare_table, differences_table

__all__ = [
    "SCHEMA_VERSION",
    "Axis",
    "BehaviorPolicy",
    "CalibrationBin",
    "Chart",
    "ClippedValue",
    "Difference",
    "DriftCurve",
    "EvaluationReport",
    "ModelQuality",
    "PolicyResult",
    "Propensities",
    "Ranking",
    "ReturnCurve",
    "SessionPair",
    "Shape",
    "Support",
    "Tick",
    "Truth",
    "Turn",
    "Weights",
    "axis_for",
    "compare_table",
    "differences_table",
    "json_schema",
    "page_environment",
    "read_report",
    "render_body",
    "render_facts",
    "render_html",
    "style_sheet",
    "summary_sentence",
    "viewer_script",
    "write_report",
]
