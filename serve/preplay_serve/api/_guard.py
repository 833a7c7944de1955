"""What every request passes first: an id, a size, a deadline for its body, and strictly correct JSON."""

import asyncio
import logging
import re
import time
from collections.abc import Mapping

from pydantic_core import from_json
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from preplay_serve._config import Limits
from preplay_serve.api._context import begin_request, request_id
from preplay_serve.api._errors import Refusal, problem
from preplay_serve.api._metrics import Metrics

log = logging.getLogger("preplay_serve.access")
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"')
_BRACKET = re.compile(rb"[\[\]{}]")
_FORM = "application/x-www-form-urlencoded"
_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
_HEADERS: Mapping[str, str] = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
_PAGE_POLICY = (
    "default-src 'none'; img-src 'self' data:; style-src 'self' 'unsafe-inline'; script-src 'self' 'unsafe-inline';"
    " connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)


class Guard:
    """ASGI middleware around the whole application."""

    def __init__(self, app: ASGIApp, limits: Limits, metrics: Metrics):
        self._app, self._limits, self._metrics = app, limits, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or pass other scopes on."""
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        headers = Headers(scope=scope)
        begin_request(headers.get("x-request-id"))
        answer = _Answer(send)
        started = time.perf_counter()
        try:
            body = await self._body(headers, receive)
            await self._app(scope, _replay(body, receive), answer)
        except Refusal as refusal:
            refused = problem(refusal.status_code, refusal.detail, fix=refusal.fix, headers=refusal.headers)
            await refused(scope, receive, answer)
        finally:
            self._account(scope, answer.status, time.perf_counter() - started)

    async def _body(self, headers: Headers, receive: Receive) -> bytes:
        if sum(len(name) + len(value) for name, value in headers.raw) > self._limits.header_bytes:
            raise Refusal(431, f"Headers may have {self._limits.header_bytes} bytes at most.")
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length[:20]) > self._limits.body_bytes:
            raise self._too_large()
        try:
            async with asyncio.timeout(self._limits.body_timeout_s):
                body = await self._read(receive)
        except TimeoutError:
            raise Refusal(408, "The request's body did not arrive in time.") from None
        if body and not headers.get("content-type", "").startswith(_FORM):
            check_json(body, self._limits.depth)
        return body

    async def _read(self, receive: Receive) -> bytes:
        parts, size = [], 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise Refusal(400, "The connection was closed before the body was complete.")
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if size > self._limits.body_bytes:
                raise self._too_large()
            if not message.get("more_body", False):
                return b"".join(parts)

    def _too_large(self) -> Refusal:
        return Refusal(413, f"A request may have {self._limits.body_bytes} bytes at most.")

    def _account(self, scope: Scope, status: int, seconds: float) -> None:
        """Count and log by the route's template: never by what stands in a path, query, header or body."""
        route = getattr(scope.get("route"), "path", "unknown")
        method = scope["method"] if scope["method"] in _METHODS else "other"
        self._metrics.requests.labels(method, route, str(status)).inc()
        self._metrics.seconds.labels(route).observe(seconds)
        fields = {"method": method, "route": route, "status": status}
        fields |= {"milliseconds": round(seconds * 1000, 2), "token": scope.get("preplay_token", "-")}
        log.info("request", extra={"fields": fields})


class _Answer:
    """Notes the status and adds the headers that every answer carries."""

    def __init__(self, send: Send):
        self._send, self.status = send, 500

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = MutableHeaders(scope=message)
            headers["X-Request-Id"] = request_id()
            for name, value in _HEADERS.items():
                headers.setdefault(name, value)
            if headers.get("content-type", "").startswith("text/html"):
                headers.setdefault("Content-Security-Policy", _PAGE_POLICY)
        await self._send(message)


def check_json(body: bytes, depth: int) -> None:
    """Refuse what the JSON standard does not allow, and nesting that is made to exhaust parsers.

    Raises:
        Refusal: 400 with the reason.
    """
    if body.count(b"{") + body.count(b"[") > depth and _levels(body) > depth:
        raise Refusal(400, f"The JSON is nested more than {depth} levels deep.")
    try:
        from_json(body, allow_inf_nan=False)
    except ValueError as error:
        utf8 = "unicode" in str(error)
        raise Refusal(400, f"The body is not valid {'UTF-8' if utf8 else 'JSON'} ({error}).") from None


def _levels(body: bytes) -> int:
    """How deep the JSON is nested."""
    level = deepest = 0
    for bracket in _BRACKET.finditer(_STRING.sub(b"", body)):
        level += 1 if bracket[0] in b"[{" else -1
        deepest = max(deepest, level)
    return deepest


def _replay(body: bytes, receive: Receive) -> Receive:
    """The body that was read already, then whatever comes (the client going away)."""
    sent = False

    async def again() -> Message:
        nonlocal sent
        if sent:
            return await receive()
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again
