"""One shape for every error: a code for programs, plain words for people, never a stack trace."""

import logging
from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from preplay.errors import PreplayError
from preplay_serve.api._context import request_id

log = logging.getLogger("preplay_serve")
_CODES = {
    400: "bad_request", 401: "not_authenticated", 403: "forbidden", 404: "not_found", 405: "method_not_allowed",
    408: "timeout", 409: "conflict", 413: "too_large", 415: "unsupported_media_type", 421: "wrong_host",
    422: "invalid", 429: "too_many", 431: "too_large", 500: "internal", 503: "overloaded", 504: "timeout",
}  # fmt: skip


class ErrorBody(BaseModel):
    """What went wrong."""

    code: str
    message: str
    field: str | None = None
    fix: str | None = None
    request_id: str


class Problem(BaseModel):
    """The body of every answer from 400 on."""

    error: ErrorBody


class Refusal(HTTPException):
    """An HTTP error with a hint."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        fix: str | None = None,
        field: str | None = None,
        retry_after_s: int | None = None,
    ):
        headers = {} if retry_after_s is None else {"Retry-After": str(retry_after_s)}
        if status == 401:
            headers["WWW-Authenticate"] = "Bearer"
        super().__init__(status, message, headers)
        self.fix, self.field = fix, field


def problem(
    status: int,
    message: str,
    *,
    fix: str | None = None,
    field: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> JSONResponse:
    """An error as an answer."""
    code = _CODES.get(status, "error")
    body = ErrorBody(code=code, message=message, fix=fix, field=field, request_id=request_id())
    return JSONResponse(Problem(error=body).model_dump(exclude_none=True), status, headers)


def add_error_handlers(app: FastAPI) -> None:
    """Make the application answer in this shape."""
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(PreplayError, _preplay)
    app.add_exception_handler(Exception, _unexpected)


def responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """What a route may answer besides success, for the OpenAPI file; every route may answer some of them."""
    always = (400, 401, 403, 408, 413, 421, 422, 429, 431, 500, 503)
    return {
        status: {"model": Problem, "description": _CODES[status]} for status in sorted({*always, *statuses})
    }


async def _http(_request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    fix, field = getattr(error, "fix", None), getattr(error, "field", None)
    headers = dict(error.headers) if error.headers else None
    return problem(error.status_code, str(error.detail), fix=fix, field=field, headers=headers)


async def _invalid(_request: Request, error: Exception) -> JSONResponse:
    """The first thing that is wrong; the input is not repeated, as it may be huge or unprintable."""
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    field = ".".join(str(part) for part in first["loc"])[:200]
    return problem(422, str(first["msg"])[:500], field=_printable(field))


async def _preplay(_request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, PreplayError)
    return problem(422, error.what, fix=error.fix)


async def _unexpected(request: Request, error: Exception) -> JSONResponse:
    log.error("unexpected error", extra={"fields": {"path": request.url.path, "error": type(error).__name__}})
    return problem(500, "Something went wrong in the server.", fix="Report the request id to its operator.")


def _printable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()
