"""``POST /v1/score`` and the outcomes of decisions."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, FiniteFloat, ValidationError
from starlette.concurrency import run_in_threadpool

from preplay.critics import DecisionState
from preplay.errors import PreplayError
from preplay_serve._scoring import Scored, ScoreItem
from preplay_serve.api._auth import authorize, require
from preplay_serve.api._errors import Refusal, responses
from preplay_serve.api._query import known_query
from preplay_serve.api._service import Service, service_of
from preplay_serve.store import OutcomeRecord, TokenRecord
from preplay_serve.store._decisions import Kind

_PLAIN = r"^[^\x00-\x1f\x7f]*$"
log = logging.getLogger(__name__)
router = APIRouter(prefix="/v1", tags=["Decisions"])


def _whole(value: Any) -> Any:
    """JSON has one kind of number: 3.0 is an integer."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


WholeNumber = Annotated[int, BeforeValidator(_whole)]


class _Body(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class State(_Body):
    """What the agent knows when it decides."""

    task: str = Field(default="", description="Instruction or system prompt of the session.")
    observation: str = Field(default="", description="What the agent saw last.")
    turn: WholeNumber = Field(default=0, ge=0, le=1_000_000, description="Position in the session, from 0.")


class ScoreRequest(_Body):
    """A decision that is asked for."""

    model: str = Field(max_length=128, description="A critic of `/v1/models`.")
    state: State
    candidates: list[str] = Field(min_length=1, description="Actions to choose from.")
    evidence: list[list[FiniteFloat]] | None = Field(
        default=None, description="Per candidate, the numbers that the critic was trained with, if any."
    )
    session_id: str = Field(
        default="", max_length=128, pattern=_PLAIN, description="Joins the decisions of a session."
    )


class ModelUsed(BaseModel):
    """Which critic decided."""

    name: str
    version: str
    encoder: str


class ScoreAnswer(BaseModel):
    """A decision. `act`: execute `action`. `fallback`: `action` is the safe one. `review`: ask a person."""

    id: str
    decision: Kind
    action: str | None
    index: int | None = Field(description="Place of the chosen candidate; null for fallback and review.")
    scores: list[float | None] = Field(description="Per candidate; null where it was blocked.")
    confidence: float | None
    reasons: list[str]
    model: ModelUsed


class Outcome(_Body):
    """How a decision went."""

    reward: FiniteFloat
    success: bool | None = None


_EXAMPLE = {
    "model": "critic",
    "state": {"task": "Return the median of a list.", "observation": "test_median failed", "turn": 1},
    "candidates": ["def median(x): return sorted(x)[len(x) // 2]", "def median(x): return sum(x) / len(x)"],
    "session_id": "s-1",
}


async def score(
    body: ScoreRequest,
    token: Annotated[TokenRecord, Depends(require("score"))],
    service: Annotated[Service, Depends(service_of)],
) -> ScoreAnswer:
    """Choose among candidates: act, fall back, or ask."""
    _check_sizes(body, service)
    state = DecisionState(body.state.task, body.state.observation, body.state.turn)
    evidence = tuple(tuple(row) for row in body.evidence) if body.evidence is not None else None
    item = ScoreItem(body.model, state, tuple(body.candidates), evidence, body.session_id, token.name)
    answer = _answer(await _decide(item, service), service)
    if service.config.log_texts:
        log.info("decision", extra={"fields": {"asked": body.model_dump(), "answered": answer.model_dump()}})
    return answer


class _Direct(APIRoute):
    """Documented like any route, but FastAPI's resolving of dependencies takes longer than a remembered decision."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """What answers a request."""
        return _answer_directly


async def _answer_directly(request: Request) -> Response:
    await known_query(request)
    token = await authorize(request, "score")
    body = _read(await request.body(), request.headers.get("content-type", ""))
    answer = await score(body, token, request.app.state.service)
    return Response(answer.model_dump_json(), media_type="application/json")


def _read(body: bytes, content_type: str) -> ScoreRequest:
    """The body, checked; its errors look like those of other routes."""
    is_json = content_type.partition(";")[0].strip().lower() == "application/json"
    try:
        return ScoreRequest.model_validate_json(body) if is_json else ScoreRequest.model_validate(body)
    except ValidationError as error:
        found = error.errors(include_url=False, include_context=False, include_input=False)
        raise RequestValidationError([{**e, "loc": ("body", *e["loc"])} for e in found]) from None


router.add_api_route(
    "/score",
    score,
    methods=["POST"],
    response_model=ScoreAnswer,
    responses=responses(404, 504),
    openapi_extra={"requestBody": {"content": {"application/json": {"example": _EXAMPLE}}}},
    route_class_override=_Direct,
)


@router.post("/decisions/{decision_id}/outcome", status_code=204, responses=responses(404))
async def record_outcome(
    decision_id: Annotated[str, Path(max_length=64, pattern=r"^de_[0-9a-f]+$")],
    body: Outcome,
    _token: Annotated[TokenRecord, Depends(require("score"))],
    service: Annotated[Service, Depends(service_of)],
) -> None:
    """Tell how a decision went; the latest word counts."""
    outcome = OutcomeRecord(reward=body.reward, success=body.success)
    if not await run_in_threadpool(service.store.decisions.record_outcome, decision_id, outcome):
        raise Refusal(404, "There is no such decision.")


async def _decide(item: ScoreItem, service: Service) -> Scored:
    """Ask for the decision, unless too many wait already."""
    limits, metrics = service.config.limits, service.metrics
    if service.pending.count >= limits.concurrent_scores:
        metrics.rejected.labels("scores").inc()
        raise Refusal(503, "Too many decisions are waiting.", retry_after_s=1)
    with service.pending, metrics.pending.track_inprogress():
        try:
            scored = await asyncio.wait_for(service.decide(item), limits.score_timeout_s)
        except TimeoutError:
            raise Refusal(504, "The decision took too long.", retry_after_s=1) from None
    if isinstance(scored, PreplayError):
        raise Refusal(404 if "no critic" in scored.what else 422, scored.what, fix=scored.fix)
    return scored


def _check_sizes(body: ScoreRequest, service: Service) -> None:
    limits = service.config.limits
    if len(body.candidates) > limits.candidates:
        raise Refusal(413, f"There may be {limits.candidates} candidates at most.", field="candidates")
    texts: dict[str, Any] = {"task": body.state.task, "observation": body.state.observation}
    texts |= {f"candidates.{i}": text for i, text in enumerate(body.candidates)}
    for field, text in texts.items():
        if len(text) > limits.text_characters:
            raise Refusal(413, f"A text may have {limits.text_characters} characters at most.", field=field)


def _answer(scored: Scored, service: Service) -> ScoreAnswer:
    record, content = scored.record, scored.record.content
    service.metrics.decisions.labels(record.model, record.decision).inc()
    return ScoreAnswer(
        id=record.id,
        decision=record.decision,
        action=scored.action,
        index=content.index,
        scores=list(content.scores),
        confidence=content.confidence,
        reasons=list(content.reasons),
        model=ModelUsed(name=record.model, version=record.version, encoder=scored.encoder),
    )
