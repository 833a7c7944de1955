"""Evaluations: the list, one of them with its report, and the report to download."""

from dataclasses import dataclass
from functools import lru_cache
from typing import get_args

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, Response
from pydantic import ValidationError

from preplay.estimators import Interval
from preplay.report import (
    EvaluationReport,
    axis_for,
    render_body,
    render_facts,
    render_html,
    summary_sentence,
)
from preplay_serve._forms import COOKIE, form_key
from preplay_serve.pages._render import missing, page, store_of
from preplay_serve.store import FINAL, EvaluationRecord, PartialEstimate, Status, Store

router = APIRouter(include_in_schema=False)
PAGE = 20
STATUSES: dict[str, Status] = {status: status for status in get_args(Status)}


@dataclass(frozen=True)
class Listed:
    """A row of the list: the evaluation, and what it found in words once it has."""

    record: EvaluationRecord
    summary: str | None


@router.get("/")
def evaluations(request: Request, status: str = "", before: str = "") -> HTMLResponse:
    """The newest first, of one status when it is given."""
    store = store_of(request)
    chosen = STATUSES.get(status)
    records = store.evaluations.recent(status=chosen, limit=PAGE + 1, before=before or None)
    shown = records[:PAGE]
    return page(
        request,
        "evaluations.html.j2",
        rows=[Listed(record, _summary_of(store, record)) for record in shown],
        counts=store.evaluations.count(),
        statuses=STATUSES,
        chosen=chosen,
        older=shown[-1].id if len(records) > PAGE else None,
        later=bool(before),
    )


@router.get("/evaluations/{evaluation_id}")
def evaluation(request: Request, evaluation_id: str, refused: bool = False) -> HTMLResponse:
    """One evaluation: how far it is, or what it found."""
    store = store_of(request)
    record = store.evaluations.get(evaluation_id)
    if record is None:
        return missing(request, "evaluation")
    report = _report(store, record)
    return page(
        request,
        "evaluation.html.j2",
        record=record,
        final=record.status in FINAL,
        refused=refused,
        key=form_key(request.cookies.get(COOKIE, ""), record.id),
        axis=axis_for([end for part in record.partial for end in (part.low, part.high)]),
        interval=_interval,
        facts=render_facts(report) if report else None,
        body=render_body(report) if report else None,
    )


@router.get("/evaluations/{evaluation_id}/report.html")
def download_page(request: Request, evaluation_id: str) -> Response:
    """The same as one file that needs no server."""
    record = store_of(request).evaluations.get(evaluation_id)
    report = _report(store_of(request), record) if record else None
    if record is None or report is None:
        return missing(request, "report")
    return _file(render_html(report), f"{record.id}.html", "text/html")


@router.get("/evaluations/{evaluation_id}/result.json")
def download_result(request: Request, evaluation_id: str) -> Response:
    """The numbers behind the report."""
    record = store_of(request).evaluations.get(evaluation_id)
    found = store_of(request).evaluations.report_json(evaluation_id) if record else None
    if record is None or found is None:
        return missing(request, "result")
    return _file(found, f"{record.id}.json", "application/json")


def _file(content: str, name: str, kind: str) -> Response:
    headers = {
        "Content-Disposition": f'attachment; filename="preplay-{name}"',
        "Content-Security-Policy": "sandbox; default-src 'none'",
        "Cache-Control": "no-store",
        "X-Content-Type-Options": "nosniff",
    }
    return Response(content, media_type=kind, headers=headers)


def _report(store: Store, record: EvaluationRecord) -> EvaluationReport | None:
    return _read(store.evaluations.report_json(record.id)) if record.status == "succeeded" else None


def _read(found: str | None) -> EvaluationReport | None:
    """None for a result of a version that is not known here."""
    try:
        return EvaluationReport.model_validate_json(found) if found else None
    except ValidationError:
        return None


def _summary_of(store: Store, record: EvaluationRecord) -> str | None:
    return _summary(store, record.id) if record.status == "succeeded" else None


@lru_cache(maxsize=500)
def _summary(store: Store, evaluation_id: str) -> str | None:
    """What a finished evaluation found; a result never changes, so it is worded once."""
    report = _read(store.evaluations.report_json(evaluation_id))
    return summary_sentence(report) if report else None


def _interval(part: PartialEstimate) -> Interval:
    return Interval(low=part.low, high=part.high, level=part.level, method="imagined returns")
