"""Who asks, and whether they may: bearer tokens, or the cookie that the login page sets for its own pages."""

import hashlib
import re
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Annotated
from urllib.parse import quote

from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException

from preplay_serve._forms import COOKIE
from preplay_serve.api._errors import Refusal
from preplay_serve.api._service import Service
from preplay_serve.store import SCOPES, Scope, Store, TokenRecord
from preplay_serve.store._records import moment

CHECKED_FORM = "preplay_checked_form"
"""In the scope of a request whose form was sent by a page of ours."""
_LOOPBACK = re.compile(r"(127\.0\.0\.1|localhost|\[::1\])(:\d{1,5})?")
_ANONYMOUS = TokenRecord.model_validate(
    {"id": "anonymous", "name": "anonymous", "scopes": SCOPES, "created": moment(0.0)}
)
_bearer = HTTPBearer(auto_error=False, description="A token made by `preplay serve token create`.")


Credentials = Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)]


class Doorkeeper:
    """Checks tokens, remembering the good ones for a moment, and how much each has asked for.

    Args:
        store: Where the tokens are.
        rate: Requests per second of a token; ten times that may come at once.
        remember_s: How long a check counts; a revoked token works for so long.
    """

    def __init__(self, store: Store, rate: float, *, remember_s: float = 2.0, most: int = 1024):
        self._store, self._rate, self._remember, self._most = store, rate, remember_s, most
        self._known: OrderedDict[bytes, tuple[float, TokenRecord]] = OrderedDict()
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._open: tuple[float, bool] = (0.0, False)

    async def admit(self, token: str) -> TokenRecord | None:
        """The token's record when it is good."""
        key, now = hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest(), time.monotonic()
        if key in self._known and self._known[key][0] > now:
            return self._known[key][1]
        record = await run_in_threadpool(self._store.tokens.check, token)
        if record:
            self._known[key] = (now + self._remember, record)
        else:
            self._known.pop(key, None)
        while len(self._known) > self._most:
            self._known.popitem(last=False)
        return record

    async def no_tokens(self) -> bool:
        """Whether there is no token at all."""
        now = time.monotonic()
        if self._open[0] < now:
            none = not await run_in_threadpool(self._store.tokens.any_active)
            self._open = (now + self._remember, none)
        return self._open[1]

    def wait_s(self, token_id: str) -> float:
        """Seconds that this token has to wait; 0 takes one request from its bucket."""
        now, burst = time.monotonic(), max(10.0, 10 * self._rate)
        level, then = self._buckets.pop(token_id, (burst, now))
        level = min(burst, level + (now - then) * self._rate)
        allowed = level >= 1
        self._buckets[token_id] = (level - allowed, now)
        while len(self._buckets) > self._most:
            self._buckets.popitem(last=False)
        return 0.0 if allowed else (1 - level) / self._rate


async def authorize(request: Request, scope: Scope) -> TokenRecord:
    """The caller's token, which must have this scope and something left of its rate."""
    service: Service = request.app.state.service
    record = await _caller(request, service)
    request.scope["preplay_token"] = record.name
    if not record.allows(scope):
        raise Refusal(403, f"The token lacks the scope {scope!r}.", fix="Ask for a token with this scope.")
    if wait := request.app.state.doorkeeper.wait_s(record.id):
        service.metrics.rejected.labels("rate").inc()
        raise Refusal(429, "Too many requests by this token.", retry_after_s=int(wait) + 1)
    return record


def require(scope: Scope) -> Callable:
    """Dependency: :func:`authorize`. ``_documented`` only tells the OpenAPI file about bearer tokens."""

    async def check(request: Request, _documented: Credentials) -> TokenRecord:
        return await authorize(request, scope)

    return check


def require_page() -> Callable:
    """Dependency of pages: like ``require("read")``, but a browser is sent to the login page."""

    async def check(request: Request) -> TokenRecord:
        try:
            return await authorize(request, "read")
        except Refusal as refusal:
            if refusal.status_code != 401:
                raise
            raise HTTPException(303, headers={"Location": f"/login?next={quote(request.url.path)}"}) from None

    return check


async def _caller(request: Request, service: Service) -> TokenRecord:
    door: Doorkeeper = request.app.state.doorkeeper
    given = request.headers.get("authorization")
    if given is not None:
        kind, _, token = given.partition(" ")
        if kind.lower() != "bearer" or not token:
            raise Refusal(401, "The Authorization header must be `Bearer TOKEN`.")
        return _known(await door.admit(token.strip()))
    if cookie := request.cookies.get(COOKIE):
        own = "x-preplay-request" in request.headers or request.scope.get(CHECKED_FORM)
        if request.method not in ("GET", "HEAD") and not own:
            raise Refusal(403, "With a cookie, changes need the header X-Preplay-Request.")
        return _known(await door.admit(cookie))
    if service.config.allow_anonymous and await door.no_tokens():
        if not _from_here(request):
            raise Refusal(421, "Without tokens this server answers to localhost only.")
        return _ANONYMOUS
    raise Refusal(401, "A token is needed.", fix="Send `Authorization: Bearer TOKEN`.")


def _from_here(request: Request) -> bool:
    """Whether the request names this machine, and no page of another site sent it."""
    host, origin = request.headers.get("host", ""), request.headers.get("origin")
    return _LOOPBACK.fullmatch(host) is not None and origin in (None, f"http://{host}")


def _known(record: TokenRecord | None) -> TokenRecord:
    if record is None:
        raise Refusal(401, "The token is unknown, wrong or revoked.")
    return record
