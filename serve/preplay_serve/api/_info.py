"""What there is, and whether the server is well."""

import logging
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Response
from pydantic import AwareDatetime, BaseModel
from sqlalchemy.exc import SQLAlchemyError

from preplay.environments import get_environment
from preplay_serve._catalog import refresh
from preplay_serve.api._auth import require
from preplay_serve.api._errors import Refusal, responses
from preplay_serve.api._service import Service, service_of
from preplay_serve.store import ArtifactKind, ArtifactRecord, DecisionFilter, DecisionRecord, TokenRecord

log = logging.getLogger(__name__)
router = APIRouter(tags=["Server"])
Server = Annotated[Service, Depends(service_of)]
Reader = Annotated[TokenRecord, Depends(require("read"))]
Admin = Annotated[TokenRecord, Depends(require("admin"))]


class ArtifactInfo(BaseModel):
    """A registered artifact."""

    kind: ArtifactKind
    name: str
    version: str
    published: AwareDatetime
    current: bool
    details: dict[str, Any]


class PolicyInfo(BaseModel):
    """A policy that evaluations may name."""

    name: str
    environment: str | None = None


class Health(BaseModel):
    """`ok`, or the answer is an error."""

    status: str = "ok"


@router.get("/v1/models", responses=responses())
def list_models(
    _token: Reader, service: Server, versions: Annotated[bool, Query()] = False
) -> list[ArtifactInfo]:
    """Critics and world models; with `versions=true` also critics that were replaced."""
    artifacts = service.store.artifacts
    critics = artifacts.list("critic", current_only=not versions)
    return [_info(record) for record in (*critics, *artifacts.list("world_models"))]


@router.get("/v1/datasets", responses=responses())
def list_datasets(_token: Reader, service: Server) -> list[ArtifactInfo]:
    """Embedded datasets."""
    return [_info(record) for record in service.store.artifacts.list("dataset")]


@router.get("/v1/policies", responses=responses())
def list_policies(_token: Reader, service: Server) -> list[PolicyInfo]:
    """Policies that evaluations may name."""
    settings = service.config.evaluations
    own = [f"python:{name}" for name in settings.python] + [f"endpoint:{name}" for name in settings.endpoints]
    own += [f"cloned:{record.name}" for record in service.store.artifacts.list("clone")]
    brought = [
        PolicyInfo(name=f"env:{name}", environment=environment)
        for environment in settings.environments
        for name in get_environment(environment).policies()
    ]
    return [PolicyInfo(name=name) for name in own] + brought


@router.get("/v1/decisions", responses=responses())
def list_decisions(
    _token: Reader,
    service: Server,
    where: Annotated[DecisionFilter, Query()],
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
    offset: Annotated[int, Query(ge=0, le=1_000_000)] = 0,
) -> list[DecisionRecord]:
    """The decision log, the newest first."""
    return service.store.decisions.recent(where, limit=limit, offset=offset)


@router.post("/v1/models/refresh", responses=responses())
def refresh_models(_token: Admin, service: Server) -> list[str]:
    """Register what is new in the server's folders; answers what was refused and why."""
    return refresh(service.config, service.store)


@router.get("/healthz")
def health() -> Health:
    """Whether the process answers."""
    return Health()


@router.get("/readyz", responses=responses())
def ready(service: Server) -> Health:
    """Whether requests can be served: the store answers."""
    try:
        service.store.ping()
    except SQLAlchemyError as error:
        log.error("the store does not answer: %s", type(error).__name__)
        raise Refusal(503, "The store does not answer.", retry_after_s=5) from error
    return Health()


@router.get(
    "/metrics",
    response_class=Response,
    responses=responses() | {200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
)
def metrics(_token: Reader, service: Server) -> Response:
    """Prometheus metrics of this replica and of the store."""
    return Response(service.metrics.text(service.store), media_type="text/plain; version=0.0.4")


def _info(record: ArtifactRecord) -> ArtifactInfo:
    return ArtifactInfo(**record.model_dump(exclude={"path"}))
