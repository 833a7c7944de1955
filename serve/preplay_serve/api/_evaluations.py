"""``/v1/evaluations``: accept, look, follow, cancel. Nothing is evaluated here: a runner takes them."""

import json
from collections.abc import AsyncIterator
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Path, Query, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import Field
from starlette.concurrency import run_in_threadpool

from preplay.environments import get_environment
from preplay_serve.api._auth import require
from preplay_serve.api._errors import Refusal, responses
from preplay_serve.api._events import events
from preplay_serve.api._service import Service, service_of
from preplay_serve.store import EvaluationRecord, EvaluationSpec, Status, TokenRecord

router = APIRouter(prefix="/v1", tags=["Evaluations"])
EvaluationId = Annotated[str, Path(max_length=64, pattern=r"^ev_[0-9a-f]+$")]
Server = Annotated[Service, Depends(service_of)]
Reader = Annotated[TokenRecord, Depends(require("read"))]
Evaluator = Annotated[TokenRecord, Depends(require("evaluate"))]
_EXAMPLE = {
    "policies": ["env:expert", "env:random"], "dataset": "demo/embedded", "models": "demo/models",
    "environment": "support_desk", "preset": "debug", "seed": 0,
}  # fmt: skip


class EvaluationAnswer(EvaluationRecord):
    """An evaluation with its report, once it has succeeded."""

    report: dict[str, Any] | None = Field(
        default=None, description="`result.json` as `preplay evaluate` writes it."
    )


@router.post(
    "/evaluations",
    status_code=202,
    responses=responses(404, 409),
    openapi_extra={"requestBody": {"content": {"application/json": {"example": _EXAMPLE}}}},
)
def create_evaluation(
    body: EvaluationSpec,
    response: Response,
    token: Evaluator,
    service: Server,
    idempotency_key: Annotated[
        str | None,
        Header(
            max_length=128, pattern=r"^[\x21-\x7e]+$", description="The same key gives the same evaluation."
        ),
    ] = None,
) -> EvaluationRecord:
    """Accept an evaluation. It is on the disk before this answers, and survives a restart."""
    versions = named_versions(body, service)
    evaluations = service.store.evaluations
    if evaluations.queued(token.name) >= service.config.limits.queued_evaluations:
        service.metrics.rejected.labels("evaluations").inc()
        raise Refusal(429, "Too many evaluations of this token are waiting.", retry_after_s=30)
    record, new = evaluations.create(
        body, token=token.name, idempotency_key=idempotency_key, versions=versions
    )
    if not new and record.spec != body:
        raise Refusal(409, "This idempotency key was used for another evaluation.")
    response.headers["Location"] = f"/v1/evaluations/{record.id}"
    return record


@router.get("/evaluations", responses=responses())
def list_evaluations(
    _token: Reader,
    service: Server,
    status: Annotated[Status | None, Query()] = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
    before: Annotated[str | None, Query(max_length=64, pattern=r"^ev_[0-9a-f]+$")] = None,
) -> list[EvaluationRecord]:
    """The newest first, without their reports."""
    return service.store.evaluations.recent(status=status, limit=limit, before=before)


@router.get("/evaluations/{evaluation_id}", responses=responses(404))
def get_evaluation(evaluation_id: EvaluationId, _token: Reader, service: Server) -> EvaluationAnswer:
    """Status, progress, the estimate so far, and the report at the end."""
    record = _existing(service, evaluation_id)
    text = service.store.evaluations.report_json(evaluation_id)
    return EvaluationAnswer(**record.model_dump(), report=json.loads(text) if text else None)


@router.delete("/evaluations/{evaluation_id}", responses=responses(404))
def cancel_evaluation(evaluation_id: EvaluationId, token: Evaluator, service: Server) -> EvaluationRecord:
    """Cancel; its workers are freed. What is final stays as it is."""
    record = _existing(service, evaluation_id)
    if record.token != token.name and not token.allows("admin"):
        raise Refusal(403, "Only the token that asked for an evaluation, or an admin, may cancel it.")
    return service.store.evaluations.cancel(evaluation_id) or record


@router.get(
    "/evaluations/{evaluation_id}/events",
    response_class=StreamingResponse,
    responses=responses(404) | {200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}}},
)
async def follow_evaluation(
    evaluation_id: EvaluationId, request: Request, _token: Reader, service: Server
) -> StreamingResponse:
    """Server-sent events: `progress` at every change, `end` when it is final."""
    await run_in_threadpool(_existing, service, evaluation_id)
    if service.streams.count >= service.config.limits.event_streams:
        service.metrics.rejected.labels("streams").inc()
        raise Refusal(503, "Too many streams of events are open.", retry_after_s=5)
    return StreamingResponse(_counted(service, evaluation_id, request), media_type="text/event-stream")


async def _counted(service: Service, evaluation_id: str, request: Request) -> AsyncIterator[str]:
    with service.streams, service.metrics.streams.track_inprogress():
        async for event in events(service.store, evaluation_id, request.is_disconnected):
            yield event


def named_versions(spec: EvaluationSpec, service: Service) -> dict[str, str]:
    """Versions of the artifacts that an evaluation names; refuses what is not registered, before it is accepted."""
    artifacts = service.store.artifacts
    dataset, models = artifacts.get("dataset", spec.dataset), artifacts.get("world_models", spec.models)
    if dataset is None:
        raise Refusal(404, "There is no dataset of this name.", field="dataset", fix="See /v1/datasets.")
    if models is None:
        raise Refusal(404, "There are no world models of this name.", field="models", fix="See /v1/models.")
    if spec.environment is not None and spec.environment not in service.config.evaluations.environments:
        raise Refusal(404, "There is no environment of this name.", field="environment")
    versions = {"dataset": dataset.version, "world_models": models.version}
    for policy in spec.policies:
        versions |= _policy_version(policy, spec, service)
    return versions


def _policy_version(policy: str, spec: EvaluationSpec, service: Service) -> dict[str, str]:
    form, _, name = policy.partition(":")
    settings = service.config.evaluations
    clone = service.store.artifacts.get("clone", name) if form == "cloned" else None
    known = {
        "env": spec.environment is not None and name in get_environment(spec.environment).policies(),
        "python": name in settings.python,
        "endpoint": name in settings.endpoints,
        "cloned": clone is not None,
    }
    if form not in known:
        fix = "Write env:NAME, cloned:NAME, python:NAME or endpoint:NAME."
        raise Refusal(422, "This is not a policy.", field="policies", fix=fix)
    if not known[form]:
        fix = "Name the environment." if form == "env" else "See /v1/policies."
        raise Refusal(404, "There is no policy of this name.", field="policies", fix=fix)
    return {policy: clone.version} if clone else {}


def _existing(service: Service, evaluation_id: str) -> EvaluationRecord:
    record = service.store.evaluations.get(evaluation_id)
    if record is None:
        raise Refusal(404, "There is no such evaluation.")
    return record
