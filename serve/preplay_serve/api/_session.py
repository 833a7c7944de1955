"""Where the pages' forms go. The cookie is never read by scripts and never sent from other sites."""

from collections.abc import Callable
from hmac import compare_digest
from typing import Annotated
from urllib.parse import parse_qs

from fastapi import APIRouter, Depends, Request
from fastapi.responses import RedirectResponse
from starlette.concurrency import run_in_threadpool

from preplay_serve._forms import COOKIE, form_key, local_path
from preplay_serve.api._auth import CHECKED_FORM, authorize
from preplay_serve.api._errors import Refusal
from preplay_serve.api._evaluations import EvaluationId, cancel_evaluation
from preplay_serve.api._service import Service, service_of

router = APIRouter(include_in_schema=False)
_DAY_S = 86_400


@router.post("/session")
async def log_in(request: Request, service: Annotated[Service, Depends(service_of)]) -> RedirectResponse:
    """Set the cookie when the token is good."""
    given = await _fields(request)
    token = given("token").strip()
    if await request.app.state.doorkeeper.admit(token) is None:
        return RedirectResponse("/login?failed=1", 303)
    answer = RedirectResponse(local_path(given("next")), 303)
    answer.set_cookie(
        COOKIE,
        token,
        max_age=_DAY_S,
        httponly=True,
        samesite="strict",
        secure=service.config.secure_cookies,
    )
    return answer


@router.post("/session/end")
def log_out() -> RedirectResponse:
    """Drop the cookie."""
    answer = RedirectResponse("/login", 303)
    answer.delete_cookie(COOKIE)
    return answer


@router.post("/evaluations/{evaluation_id}/cancel")
async def cancel(
    evaluation_id: EvaluationId, request: Request, service: Annotated[Service, Depends(service_of)]
) -> RedirectResponse:
    """Cancel an evaluation, for browsers without scripts too."""
    given, cookie = await _fields(request), request.cookies.get(COOKIE, "")
    if not compare_digest(given("key").encode(), form_key(cookie, evaluation_id).encode()):
        raise Refusal(403, "This form is not of this session.", fix="Load the page again.")
    request.scope[CHECKED_FORM] = True
    page = f"/evaluations/{evaluation_id}"
    try:
        token = await authorize(request, "evaluate")
        await run_in_threadpool(cancel_evaluation, evaluation_id, token, service)
    except Refusal as refusal:
        if refusal.status_code != 403:
            raise
        return RedirectResponse(f"{page}?refused=1", 303)
    return RedirectResponse(page, 303)


async def _fields(request: Request) -> Callable[[str], str]:
    """The fields of a form; missing ones are empty.

    Raises:
        Refusal: When there are more than any form of ours has.
    """
    try:
        found = parse_qs((await request.body()).decode("utf-8", "replace"), max_num_fields=4)
    except ValueError:
        raise Refusal(400, "This form has too many fields.") from None
    return lambda name: found.get(name, [""])[0]
